//! The probe's script, run for real on this machine.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use std::{collections::BTreeMap, fs, path::Path, process::Command, time::Instant};

use kk_engine::{Facts, ProbeSpec, parse_probe, probe_script};

/// Runs the script in a directory of its own below `root`, with the host's files below `root` too.
fn run(spec: &ProbeSpec, root: &Path) -> Facts {
    let work = root.join("work");
    fs::create_dir_all(&work).unwrap();
    let script = probe_script(spec, "n0nce");
    let now = || i64::try_from(std::time::UNIX_EPOCH.elapsed().unwrap().as_millis()).unwrap();
    let sent = now();
    let output =
        Command::new("sh").arg("-c").arg(script).current_dir(&work).env("KK_ROOT", root).output().unwrap();
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
        values: BTreeMap::from([
            ("frame".to_owned(), "printf 'a\\n@n0nc value\\n\\n'".to_owned()),
            ("fails".to_owned(), "echo no; exit 3".to_owned()),
            ("quotes".to_owned(), "printf %s \"it's\"".to_owned()),
        ]),
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
    assert_eq!(facts.values["frame"], "a\n@n0nc value\n");
    assert_eq!(facts.values["quotes"], "it's");
    assert!(!facts.values.contains_key("fails"));
    assert!(facts.cpus > 0 && facts.memory_kib > 100_000);
    assert!(facts.addresses.contains("127.0.0.1"));
    assert!(facts.clock_skew_ms.abs() < 500, "{}", facts.clock_skew_ms);
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

    // What is remembered is believed while nothing differs: that is what makes a probe cheap.
    fs::write(&sums, remembered.replacen(&remembered[..64], &"a".repeat(64), 1)).unwrap();
    assert_eq!(sum(&run(&spec, root.path())), "a".repeat(64));
    // The same size and a time put back by touch: the ctime tells.
    let kept = fs::metadata(&big).unwrap().modified().unwrap();
    fs::write(&big, vec![8; 300_000]).unwrap();
    fs::File::options().write(true).open(&big).unwrap().set_modified(kept).unwrap();
    let changed = sum(&run(&spec, root.path()));
    assert!(changed != "a".repeat(64) && changed != first, "{changed}");
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

/// Not a test of speed on a shared machine, but of the number of processes: sixty files cost no more than one.
#[test]
fn a_probe_of_sixty_files_is_quick() {
    let root = tempfile::tempdir().unwrap();
    let names = (0..60).map(|number| path(root.path(), &format!("file-{number}")));
    let spec = ProbeSpec { files: names.collect(), ..ProbeSpec::default() };
    for name in &spec.files {
        fs::write(name, name).unwrap();
    }
    let began = Instant::now();
    assert_eq!(run(&spec, root.path()).files.len(), 60);
    let took = began.elapsed();
    println!("a probe of 60 files took {took:?}");
    assert!(took.as_millis() < 2000, "{took:?}");
}
