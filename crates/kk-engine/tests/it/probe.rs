//! The probe's script, run on this machine.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use std::{collections::BTreeMap, fs, path::Path, process::Command, sync::Mutex, time::Duration};

use kk_connector::{Connection, Error, Output, Stats, Upload, UploadOutcome};
use kk_engine::{Answer, Facts, ProbeSpec, Question, Unanswered, parse_probe, probe_script, question};
use tokio_util::sync::CancellationToken;

/// Runs the script in its own directory below `root`, with the host's files below `root` too.
fn run(spec: &ProbeSpec, root: &Path) -> Facts {
    run_with_path(spec, root, &std::env::var("PATH").unwrap())
}

fn run_with_path(spec: &ProbeSpec, root: &Path, path: &str) -> Facts {
    let work = root.join("work");
    fs::create_dir_all(&work).unwrap();
    let script = probe_script(spec, "n0nce").replacen("unset KK_ROOT ", "unset ", 1);
    let now = || i64::try_from(std::time::UNIX_EPOCH.elapsed().unwrap().as_millis()).unwrap();
    let sent = now();
    let mut shell = Command::new("sh");
    shell.arg("-c").arg(script).current_dir(&work).env("KK_ROOT", root).env("PATH", path);
    let output = shell.output().unwrap();
    let received = now();
    fs::remove_dir_all(&work).unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let errors = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success() && errors.is_empty(), "{errors}");
    parse_probe(spec, "n0nce", &text, (sent, received)).unwrap()
}

fn path(root: &Path, name: &str) -> String {
    root.join(name).to_str().unwrap().to_owned()
}

#[test]
fn this_machine_is_seen_as_it_is() {
    let root = tempfile::tempdir().unwrap();
    fs::write(root.path().join("it's a file"), "hello\n").unwrap();
    fs::create_dir(root.path().join("bin")).unwrap();
    fs::write(root.path().join("bin/one"), "1").unwrap();
    std::os::unix::fs::symlink("bin/one", root.path().join("link")).unwrap();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let missing = path(root.path(), "missing");
    let spec = ProbeSpec {
        files: ["it's a file", "bin/*", "link", "missing"].map(|name| path(root.path(), name)).into(),
        units: ["no-such.service".to_owned()].into(),
        tools: ["sh".to_owned(), "no-such-tool".to_owned()].into(),
        sysctls: ["kernel.ostype".to_owned(), "kernel.pid_max".to_owned(), "no.such".to_owned()].into(),
        ports: [port].into(),
        users: ["root".to_owned(), "no-such-user".to_owned()].into(),
        modules: ["no_such_module".to_owned()].into(),
        disks: ["/".to_owned(), format!("{missing}/below")].into(),
        questions: BTreeMap::new(),
    };
    let facts = run(&spec, root.path());

    let file = &facts.files[&path(root.path(), "it's a file")];
    assert_eq!(file.sha256, "5891b5b522d5df086d0ff0b110fbd9d21bb4fc7163af34d08286a2e846f6be03");
    assert_eq!((file.kind.as_str(), file.mode.as_str()), ("file", "644"));
    assert!(file.written_ms > 0, "written after boot");
    assert_eq!(facts.files[&path(root.path(), "bin/one")].kind, "file");
    assert_eq!(facts.files[&path(root.path(), "link")].link, "bin/one");
    assert!(!facts.files.contains_key(&missing));
    assert!(facts.units.is_empty());
    assert_eq!(facts.tools.keys().collect::<Vec<_>>(), ["sh"]);
    assert_eq!(facts.sysctls["kernel.ostype"], "Linux");
    let pid_max = fs::read_to_string("/proc/sys/kernel/pid_max").unwrap();
    assert_eq!(facts.sysctls["kernel.pid_max"], pid_max.trim(), "a number is read whole");
    assert_eq!(facts.sysctls.len(), 2);
    assert!(facts.ports.contains_key(&port));
    assert_eq!(facts.users, ["root".to_owned()].into());
    assert!(facts.modules.is_empty());
    assert!(facts.disks["/"].0 > facts.disks["/"].1 && facts.disks.len() == 2);
    assert!(facts.cpus > 0 && facts.memory_kib > 100_000);
    assert!(facts.addresses.contains("127.0.0.1"));
    let (skew, unsure) = (facts.clock_skew_ms, facts.clock_uncertainty_ms);
    assert!(skew.abs() <= unsure + 1, "the same clock: {skew} ± {unsure}");
    assert!(!facts.hostname.is_empty() && !facts.kernel.is_empty() && !facts.os_id.is_empty());
    assert!(!root.path().join("etc").exists(), "a probe makes nothing on a fresh host");
}

#[test]
fn sums_of_large_files_are_remembered_until_the_file_changes() {
    let root = tempfile::tempdir().unwrap();
    let big = root.path().join("big");
    fs::write(&big, vec![7; 300_000]).unwrap();
    fs::create_dir_all(root.path().join("etc/kubekey")).unwrap();
    let spec = ProbeSpec { files: [path(root.path(), "big")].into(), ..ProbeSpec::default() };
    let sums = root.path().join("etc/kubekey/sums");

    let sum = |facts: &Facts| facts.files[&path(root.path(), "big")].sha256.clone();
    let first = sum(&run(&spec, root.path()));
    assert!(!sums.exists(), "a file written just now may change again unseen");
    std::thread::sleep(std::time::Duration::from_millis(2200));
    assert_eq!(sum(&run(&spec, root.path())), first);
    let remembered = fs::read_to_string(&sums).unwrap();
    assert!(remembered.starts_with(&first), "{remembered}");

    // A stored checksum is used as long as no other field differs: this makes a probe cheap.
    fs::write(&sums, remembered.replacen(&remembered[..64], &"a".repeat(64), 1)).unwrap();
    assert_eq!(sum(&run(&spec, root.path())), "a".repeat(64));
    // The size is the same and touch has restored the time: the ctime shows the change.
    let kept = fs::metadata(&big).unwrap().modified().unwrap();
    fs::write(&big, vec![8; 300_000]).unwrap();
    fs::File::options().write(true).open(&big).unwrap().set_modified(kept).unwrap();
    let changed = sum(&run(&spec, root.path()));
    assert!(changed != "a".repeat(64) && changed != first, "{changed}");
}

#[test]
fn a_question_without_an_answer_says_why() {
    let root = tempfile::tempdir().unwrap();
    let ask = |name, snippet| Question::new(name, snippet, question::text).within(Duration::from_secs(1));
    let (framed, fails) =
        (ask("framed", "printf 'a\\n@n0nc reply 0 0\\n'"), ask("fails", "echo refused >&2; exit 3"));
    let slow = ask("slow", "echo begun; exec sleep 60");
    let deaf = ask("deaf", "trap : TERM; echo begun; while :; do sleep 60; done");
    let cut = ask("cut", "echo begun; exec sleep 60").marks_its_end();
    let other = ask("other", "");
    let mut spec = ProbeSpec::default();
    for question in [&framed, &fails, &slow, &deaf, &cut] {
        spec.ask(question);
    }
    let facts = run(&spec, root.path());
    assert_eq!(facts.answer(&framed), Answer::Answered("a\n@n0nc reply 0 0".to_owned()));
    let refused = Unanswered::Failed { code: 3, stderr: "refused".into() };
    assert_eq!(facts.answer(&fails), Answer::Unanswered(refused));
    for late in [&slow, &deaf] {
        assert_eq!(facts.answer(late), Answer::Unanswered(Unanswered::TimedOut { seconds: 1 }));
    }
    assert_eq!(facts.answer(&cut), Answer::Answered("begun".to_owned()));
    assert_eq!(facts.answer(&other), Answer::NotAsked);
}

#[test]
fn an_answer_that_was_cut_off_is_refused() {
    let spec = ProbeSpec::default();
    let output = Command::new("sh")
        .arg("-c")
        .arg(probe_script(&spec, "n"))
        .current_dir(tempfile::tempdir().unwrap().path())
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let half = &text[..text.len() / 2];
    assert!(parse_probe(&spec, "n", half, (0, 0)).unwrap_err().contains("missing"));
    assert!(parse_probe(&spec, "other", &text, (0, 0)).is_err());
}

#[test]
fn a_probe_of_sixty_files_costs_as_many_processes_as_one() {
    let root = tempfile::tempdir().unwrap();
    let names = (0..60).map(|number| path(root.path(), &format!("file-{number}")));
    let spec = ProbeSpec { files: names.collect(), ..ProbeSpec::default() };
    for name in &spec.files {
        fs::write(name, name).unwrap();
    }
    let (programs, log) = (root.path().join("programs"), root.path().join("log"));
    fs::create_dir(&programs).unwrap();
    for name in ["stat", "sha256sum", "readlink"] {
        let real = ["/usr/bin", "/bin"].iter().map(|at| Path::new(at).join(name)).find(|path| path.exists());
        let text =
            format!("#!/bin/sh\necho {name} >>{}\nexec {} \"$@\"\n", log.display(), real.unwrap().display());
        fs::write(programs.join(format!("{name}.text")), text).unwrap();
    }
    // Another process writes the executables: see execve(2), ETXTBSY.
    let copy = "for text in *.text; do cp \"$text\" \"${text%.text}\"; chmod 755 \"${text%.text}\"; done";
    let copied = std::process::Command::new("sh").args(["-ec", copy]).current_dir(&programs).status();
    assert!(copied.unwrap().success());
    let path = format!("{}:{}", programs.display(), std::env::var("PATH").unwrap());
    assert_eq!(run_with_path(&spec, root.path(), &path).files.len(), 60);
    assert_eq!(fs::read_to_string(log).unwrap(), "stat\nsha256sum\n");
}

/// The answer of a host other than this machine; the sections that a test does not read are empty.
fn answer(sections: &[(&str, &str)]) -> String {
    let kernel = "old\n5.4.0\naarch64\n4\nMemTotal: 8000000 kB\n1000.50 1.0\n1700000001\nCapEff: 0\n";
    let names = [
        "begun",
        "files",
        "sums",
        "links",
        "units",
        "tools",
        "sysctls",
        "ports",
        "users",
        "disks",
        "modules",
        "cgroups",
        "kernel",
        "swaps",
        "selinux",
        "release",
        "resolv",
        "addresses",
        "owned",
        "ended",
    ];
    names.iter().fold(String::new(), |all, name| {
        let text = match *name {
            "begun" => "1700000000\n",
            "ended" => "1700000000%N\n",
            "kernel" => kernel,
            _ => "",
        };
        let text = sections.iter().find(|(given, _)| given == name).map_or(text, |(_, text)| text);
        all + "\n@n " + name + "\n" + text
    })
}

#[test]
fn a_host_with_few_and_old_tools_is_understood() {
    let spec = ProbeSpec {
        ports: [6443, 2379, 1].into(),
        units: ["a.service", "b.service", "c.service"].map(str::to_owned).into(),
        disks: ["/data".to_owned()].into(),
        modules: ["br_netfilter", "vxlan", "veth"].map(str::to_owned).into(),
        ..ProbeSpec::default()
    };
    let unit = |load: &str, active: &str| {
        format!(
            "LoadState={load}\nActiveState={active}\nUnitFileState=enabled\nNeedDaemonReload=yes\nActiveEnterTimestampMonotonic=5000000\n"
        )
    };
    let units = format!(
        "{}\n{}\n{}",
        unit("not-found", "inactive"),
        unit("loaded", "active"),
        unit("masked", "failed")
    );
    let facts = parse_probe(
        &spec,
        "n",
        &answer(&[
            // A stat without fractions of a second.
            ("files", "regular file\t644\troot:root\t3\t1700000000\t1700000000\t7\t/etc/a b\nregular empty file\t600\t?:?\t0\t5\t5\t8\t/e\nregular file\t644\troot:root\t3\t1700003600.5\t1700003600.5\t9\t/f\n"),
            ("sums", "aa  /etc/a b\n"),
            ("units", &units),
            // No ss: /proc/net/tcp and tcp6. 192B is 6443, 094B is 2379; the last is no listener.
            ("ports", "  sl  local_address rem_address   st\n   0: 0100007F:192B 00000000:0000 0A 0\n   1: 00000000000000000000000000000000:094B 0:0 0A 0\n   2: 0100007F:0001 0:0 01 0\n"),
            ("disks", "of\t/data\nFilesystem 1024-blocks Used Available Capacity Mounted on\n//server/my share 1000 400 600 40% /mnt/a b\n"),
            ("modules", "loaded br-netfilter\nloadable ip_vs\nconfig VXLAN\n"),
            ("cgroups", "v1 cpu\nv1 memory\nmanaged memory\nsystemd\n"),
            ("swaps", "Filename\tType\n/dev/sda2 partition 1 2 3\n/swap\\040file file 1 2 3\n"),
            ("selinux", "1\n"),
            ("release", "ID=\"rocky\"\nVERSION_ID='9.4'\nPRETTY_NAME=\"Rocky Linux 9.4 (Blue Onyx)\"\n"),
            ("resolv", "# c\nnameserver 10.0.0.2\n nameserver\t10.0.0.3 \nsearch x\n"),
            ("addresses", "10.0.0.5 fd00::5 \n"),
            ("owned", "made\t/a\nsaved\t/b\nmade\t/etc/ho"),
        ]),
        (1_700_000_010_000, 1_700_000_010_200),
    )
    .unwrap();
    // Ten seconds behind; its clock counts whole seconds, and the probe took 0.2 s.
    assert_eq!((facts.clock_skew_ms, facts.clock_uncertainty_ms), (-9_600, 600));
    assert_eq!((facts.arch.as_str(), facts.cpus, facts.memory_kib), ("arm64", 4, 8_000_000));
    assert!(!facts.can_raise_limits && !facts.cgroup_v2 && facts.systemd_cgroups && facts.systemd);
    assert_eq!(facts.files["/etc/a b"].sha256, "aa");
    assert_eq!(facts.files["/etc/a b"].written_ms, 999_500);
    assert_eq!(facts.files["/f"].written_ms, 0, "the clock was set back since");
    assert_eq!((facts.files["/e"].written_ms, facts.files["/e"].kind.as_str()), (0, "file"));
    assert_eq!(facts.units.keys().collect::<Vec<_>>(), ["b.service", "c.service"]);
    let unit = &facts.units["b.service"];
    assert!(unit.active && unit.enabled && unit.stale && unit.active_since_ms == 5000);
    assert_eq!(facts.ports, BTreeMap::from([(2379, String::new()), (6443, String::new())]));
    assert_eq!(facts.disks["/data"], (1000, 600));
    assert_eq!(facts.modules, ["br_netfilter", "vxlan"].map(str::to_owned).into());
    assert_eq!(facts.features, ["br_netfilter", "ipvs", "memory_cgroup", "vxlan"].map(str::to_owned).into());
    assert_eq!(facts.swaps.len(), 2);
    assert_eq!((facts.os_id.as_str(), facts.os_version.as_str()), ("rocky", "9.4"));
    assert_eq!(facts.selinux, "enforcing");
    assert_eq!(facts.nameservers, ["10.0.0.2", "10.0.0.3"]);
    assert_eq!(facts.addresses.len(), 2);
    assert!(facts.owns("/a") && facts.owns("/b"));
    assert_eq!(facts.owned.entries().len(), 2, "a line that was cut does not count");
}

#[test]
fn time_on_the_way_is_not_a_clock_that_is_off() {
    for (sent, received) in [(-2000, 100), (-100, 2000), (-3000, 3000)] {
        let clock = |name| (name, "1700000000000000000\n");
        let text = answer(&[clock("begun"), clock("ended")]);
        let now = 1_700_000_000_000;
        let facts = parse_probe(&ProbeSpec::default(), "n", &text, (now + sent, now + received)).unwrap();
        assert!(facts.clock_skew_ms.abs() <= facts.clock_uncertainty_ms, "{facts:?}");
    }
}

#[test]
fn nonsense_is_refused_with_what_is_wrong() {
    let spec = ProbeSpec::default();
    for (section, text, wanted) in [
        ("kernel", "a\nb\n", "too short"),
        (
            "kernel",
            "h\n6\nx86_64\nmany\nMemTotal: 1 kB\n1.0 1\n5\nCapBnd: 0\n",
            "\"many\" is not a number of processors",
        ),
        ("kernel", "h\n6\nx86_64\n1\nMemTotal\n1.0 1\n5\nCapBnd: 0\n", "is not a memory size"),
        ("files", "regular file\t644\tr:r\t3\tnever\t1\t7\t/x\n", "/x has no time"),
        ("ended", "soon\n", "it has no end"),
    ] {
        let error = parse_probe(&spec, "n", &answer(&[(section, text)]), (0, 0)).unwrap_err();
        assert!(error.contains(wanted), "{error}");
    }
}

#[test]
fn what_is_told_of_some_is_not_taken_for_others() {
    let spec = ProbeSpec {
        units: ["a.service", "b.service"].map(str::to_owned).into(),
        disks: ["/data", "/var"].map(str::to_owned).into(),
        ..ProbeSpec::default()
    };
    let unit = "LoadState=loaded\nActiveState=active\n";
    let both = [unit, unit].join("\n");
    let parse = |units: &str, cgroups: &str| {
        // df printed nothing for the first path.
        let disks = "of\t/data\nof\t/var\nFilesystem Capacity\n/dev/vda1 1000 400 600 40% /var\n";
        let text = answer(&[("units", units), ("cgroups", cgroups), ("disks", disks)]);
        parse_probe(&spec, "n", &text, (1_700_000_010_000, 1_700_000_010_200))
    };
    assert_eq!(parse("", "v2 memory\nsystemd\n").unwrap_err(), "systemd reported 0 of 2 units");
    assert_eq!(parse(unit, "v2 memory\nsystemd\n").unwrap_err(), "systemd reported 1 of 2 units");
    assert_eq!(parse(&both, "v2 memory\nsystemd\n").unwrap().units.len(), 2);
    let facts = parse("", "v2 memory\n").unwrap();
    assert!(facts.units.is_empty());
    assert_eq!(facts.disks, BTreeMap::from([("/var".to_owned(), (1000, 600))]));
}

/// A connection whose calls end with these results, one after the other, each after some time.
struct Breaks {
    time: Duration,
    answers: Mutex<Vec<Result<Output, Error>>>,
}

#[async_trait::async_trait]
impl Connection for Breaks {
    fn host(&self) -> &'static str {
        "node1"
    }

    async fn run(&self, command: kk_connector::Command) -> Result<Output, Error> {
        // The end of a long answer is useless without its beginning.
        assert_eq!((command.whole, command.keep), (true, 32 << 20));
        tokio::time::sleep(self.time).await;
        self.answers.lock().unwrap().pop().unwrap()
    }

    async fn upload(&self, _upload: Upload) -> Result<UploadOutcome, Error> {
        Ok(UploadOutcome::default())
    }

    async fn read_part(&self, _path: &str, _offset: u64, _most: u64) -> Result<Vec<u8>, Error> {
        Ok(Vec::new())
    }

    fn stats(&self) -> Stats {
        Stats::default()
    }

    async fn close(&self) {}
}

#[tokio::test(start_paused = true)]
async fn a_probe_looks_three_times_where_the_connection_breaks_or_the_answer_is_none() {
    let (host, reason) = (|| "node1".to_owned(), || "reset".to_owned());
    let lost = || Err(Error::Lost { host: host(), reason: reason() });
    let unreachable = || Err(Error::Unreachable { address: host(), reason: reason() });
    let sudo = || Err(Error::Sudo { host: host(), user: "ada".into(), reason: reason() });
    let said = |code| Ok(Output { code, stdout: "half an answer".into(), ..Output::default() });
    let too_long = || Err(Error::TooLong { host: host(), most: 1 });
    let rest = || Err(Error::Cancelled { host: "nobody".into() });
    for (seconds, answers, attempts) in [
        (0, [sudo(), lost(), lost()], 1),
        (0, [lost(), sudo(), lost()], 2),
        (0, [said(0), lost(), said(0)], 3),
        (0, [said(1), lost(), lost()], 1),
        (0, [too_long(), lost(), lost()], 1),
        (25, [lost(), lost(), sudo()], 3),
        (61, [lost(), lost(), lost()], 1),
        (1, [unreachable(), lost(), unreachable()], 3),
        (3, [unreachable(), lost(), lost()], 1),
    ] {
        let name = format!("{answers:?}");
        let answers = [rest()].into_iter().chain(answers.into_iter().rev()).collect();
        let host = Breaks { time: Duration::from_secs(seconds), answers: Mutex::new(answers) };
        let cancel = CancellationToken::new();
        let failure = kk_engine::probe(&host, &ProbeSpec::default(), &cancel).await.unwrap_err();
        assert_eq!(4 - host.answers.lock().unwrap().len(), attempts, "{name}: {failure}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_question_that_took_all_its_time_leaves_some_to_look_again() {
    let lost = || Err(Error::Lost { host: "node1".into(), reason: "reset".into() });
    let mut spec = ProbeSpec::default();
    spec.ask(&Question::new("slow", ":", question::text));
    let host = Breaks { time: Duration::from_secs(61), answers: Mutex::new(vec![lost(), lost(), lost()]) };
    kk_engine::probe(&host, &spec, &CancellationToken::new()).await.unwrap_err();
    assert_eq!(host.answers.lock().unwrap().len(), 1);
}

#[tokio::test]
async fn nobody_waits_for_the_next_look_of_a_run_that_is_stopped() {
    let lost = Error::Lost { host: "node1".into(), reason: "reset".into() };
    let host = Breaks { time: Duration::ZERO, answers: Mutex::new(vec![Err(lost)]) };
    let cancel = CancellationToken::new();
    cancel.cancel();
    let failure = kk_engine::probe(&host, &ProbeSpec::default(), &cancel).await.unwrap_err();
    assert!(failure.connection && host.answers.lock().unwrap().is_empty());
}
