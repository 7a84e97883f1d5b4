//! `down` restores the machine's previous state whatever happened to the lab, and `up` works again. Needs root and a lab that is
//! not in use: `cargo test -p kk-lab --test leaves_nothing -- --ignored`.

#![expect(clippy::unwrap_used, reason = "a test that cannot look at the machine has failed")]

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::sleep;
use std::time::Duration;

/// There is one lab on a machine; the tests of this file take turns.
static ALONE: Mutex<()> = Mutex::new(());

fn alone() -> MutexGuard<'static, ()> {
    // The state that a failed test leaves does not affect the others: each begins with `down`.
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Parts of the machine's state that a lab could leave changed. Zombies are not counted: they are their parent's business.
#[derive(Debug, PartialEq, Eq)]
struct Machine {
    mounts: Vec<String>,
    cgroups: BTreeSet<String>,
    namespaces: BTreeSet<String>,
    links: BTreeSet<String>,
    processes: BTreeSet<String>,
    inotify: String,
    states: BTreeSet<String>,
}

impl Machine {
    fn look() -> Self {
        let lines = |text: String, column: usize| -> Vec<String> {
            text.lines().filter_map(|line| line.split(' ').nth(column)).map(str::to_owned).collect()
        };
        let names = |directory: &str| -> BTreeSet<String> {
            let entries = fs::read_dir(directory).into_iter().flatten().flatten();
            entries.map(|entry| entry.path().display().to_string()).collect()
        };
        let groups =
            names("/sys/fs/cgroup").iter().flat_map(|hierarchy| names(hierarchy)).collect::<BTreeSet<_>>();
        Self {
            mounts: lines(fs::read_to_string("/proc/self/mountinfo").unwrap(), 4),
            cgroups: groups.into_iter().filter(|path| Path::new(path).is_dir()).collect(),
            namespaces: names("/run/netns"),
            links: names("/sys/class/net"),
            processes: processes(),
            inotify: fs::read_to_string("/proc/sys/fs/inotify/max_user_instances").unwrap(),
            states: names("/var/lib")
                .into_iter()
                .filter(|path| path.starts_with("/var/lib/kk-lab"))
                .collect(),
        }
    }
}

/// Command lines that only a lab has.
fn processes() -> BTreeSet<String> {
    let entries = fs::read_dir("/proc").unwrap().flatten();
    let lines = entries.filter_map(|entry| fs::read(entry.path().join("cmdline")).ok());
    let lines = lines.map(|line| String::from_utf8_lossy(&line).replace('\0', " "));
    lines
        .filter(|line| {
            ["systemd-nspawn", "mirror serve", "docker-registry"].iter().any(|own| line.contains(own))
        })
        .collect()
}

fn lab(args: &[&str]) {
    let output = Command::new(env!("CARGO_BIN_EXE_kk-lab")).args(args).output().unwrap();
    assert!(output.status.success(), "kk-lab {args:?}: {}", String::from_utf8_lossy(&output.stderr));
}

fn begin(args: &[&str]) -> Child {
    Command::new(env!("CARGO_BIN_EXE_kk-lab")).args(args).stderr(Stdio::null()).spawn().unwrap()
}

/// Ends every process of the lab at once, as the end of a machine's session does.
fn kill_everything() {
    for hierarchy in fs::read_dir("/sys/fs/cgroup").unwrap().flatten() {
        for group in fs::read_dir(hierarchy.path()).into_iter().flatten().flatten() {
            if group.file_name().to_string_lossy().starts_with("kk-lab-") {
                let _ = Command::new("sh")
                    .args(["-c", "find \"$1\" -name cgroup.procs -exec cat {} + | xargs -r kill -9", "sh"])
                    .arg(group.path())
                    .stderr(Stdio::null())
                    .status();
            }
        }
    }
    sleep(Duration::from_millis(500));
}

fn run(program: &str, args: &[&str]) {
    assert!(Command::new(program).args(args).status().unwrap().success(), "{program} {args:?}");
}

#[test]
#[ignore = "needs root, and a lab that nobody uses"]
fn down_restores_the_machine_after_every_kind_of_crash() {
    let _alone = alone();
    lab(&["down"]);
    let before = Machine::look();
    let boot: &[&str] = &["up", "--no-mirror", "--hosts", "2"];
    let crashes: [(&str, &dyn Fn()); 7] = [
        ("none", &|| {}),
        ("all processes killed", &kill_everything),
        ("killed, and the records lost", &|| {
            kill_everything();
            // `down` reads the previous limit from the record. The records are removed here, so the limit is restored first.
            fs::write("/proc/sys/fs/inotify/max_user_instances", &before.inotify).unwrap();
            for entry in
                fs::read_dir("/var/lib/kk-lab").unwrap().flatten().filter(|entry| entry.path().is_file())
            {
                fs::remove_file(entry.path()).unwrap();
            }
        }),
        ("killed, and the namespace unmounted", &|| {
            kill_everything();
            run("umount", &["/run/netns/kk-lab"]);
        }),
        ("killed, and a root unmounted", &|| {
            kill_everything();
            run("umount", &["/var/lib/kk-lab/hosts/node1/root"]);
        }),
        ("the records lost while hosts run", &|| {
            fs::write("/proc/sys/fs/inotify/max_user_instances", &before.inotify).unwrap();
            run("find", &["/var/lib/kk-lab", "-maxdepth", "1", "-type", "f", "-delete"]);
        }),
        ("a server of the lab and a command inside", &|| {
            lab(&["enter", "--", "sh", "-c", "sleep 600 >/dev/null 2>&1 &"]);
        }),
    ];
    for (crash, happen) in crashes {
        lab(boot);
        let up = Machine::look();
        assert!(
            up.mounts != before.mounts && up.cgroups != before.cgroups && up.processes != before.processes
        );
        happen();
        lab(&["down"]);
        assert_eq!(Machine::look(), before, "left behind after: {crash}");
    }
}

#[test]
#[ignore = "needs root, and a lab that nobody uses"]
fn a_killed_up_is_cleared_at_every_moment() {
    let _alone = alone();
    lab(&["down"]);
    let before = Machine::look();
    for milliseconds in [30, 100, 200, 400, 800, 1600] {
        let mut up = begin(&["up", "--no-mirror", "--hosts", "3"]);
        sleep(Duration::from_millis(milliseconds));
        up.kill().unwrap();
        up.wait().unwrap();
        lab(&["down"]);
        assert_eq!(Machine::look(), before, "left behind by an `up` that was killed after {milliseconds} ms");
    }
}

#[test]
#[ignore = "needs root, and a lab that nobody uses"]
fn a_killed_down_is_finished_by_the_next_one() {
    let _alone = alone();
    lab(&["down"]);
    let before = Machine::look();
    for milliseconds in [5, 30, 100, 300] {
        lab(&["up", "--no-mirror", "--hosts", "2"]);
        let mut down = begin(&["down"]);
        sleep(Duration::from_millis(milliseconds));
        down.kill().unwrap();
        down.wait().unwrap();
        lab(&["down"]);
        assert_eq!(
            Machine::look(),
            before,
            "left behind by a `down` that was killed after {milliseconds} ms"
        );
    }
}

#[test]
#[ignore = "needs root, and a lab that nobody uses"]
fn labs_at_once_take_turns() {
    let _alone = alone();
    lab(&["down"]);
    let before = Machine::look();
    let calls: [&[&str]; 4] = [
        &["up", "--no-mirror", "--hosts", "2"],
        &["up", "--no-mirror", "--hosts", "1", "--fresh"],
        &["down"],
        &["up", "--no-mirror", "--hosts", "2"],
    ];
    for mut call in calls.map(begin) {
        assert!(call.wait().unwrap().success());
    }
    lab(&["down"]);
    assert_eq!(Machine::look(), before);
}

#[test]
#[ignore = "needs root, and a lab that nobody uses"]
fn a_second_lab_works_on_when_the_first_one_is_taken_down() {
    let _alone = alone();
    lab(&["down", "--all"]);
    let before = Machine::look();
    for number in ["1", "2"] {
        lab(&["--lab", number, "up", "--no-mirror", "--hosts", "1"]);
    }
    let limit = Machine::look().inotify;
    lab(&["down"]);
    lab(&["--lab", "2", "exec", "node1", "--", "true"]);
    assert_eq!(Machine::look().inotify, limit, "the second lab needs it");
    lab(&["down", "--all"]);
    assert_eq!(Machine::look(), before);
}

#[test]
#[ignore = "needs root, and a lab that nobody uses"]
fn what_is_not_the_lab_s_stays() {
    let _alone = alone();
    lab(&["up", "--no-mirror", "--hosts", "1"]);
    run("ip", &["netns", "add", "lab"]);
    let hierarchies = ["/sys/fs/cgroup/pids", "/sys/fs/cgroup"].map(Path::new);
    let hierarchy = hierarchies.into_iter().find(|path| path.exists()).unwrap();
    let group = &hierarchy.join("lab-node1");
    fs::create_dir(group).unwrap();
    let mut program = Command::new("sleep").arg("60").spawn().unwrap();
    fs::write(group.join("cgroup.procs"), program.id().to_string()).unwrap();
    lab(&["down"]);
    let lives = program.try_wait().unwrap().is_none();
    let network = Path::new("/run/netns/lab").exists();
    program.kill().unwrap();
    program.wait().unwrap();
    run("ip", &["netns", "delete", "lab"]);
    fs::remove_dir(group).unwrap();
    assert!(lives && network, "down ended what was not the lab's: {lives} {network}");
}

#[test]
#[ignore = "needs root, and a lab that nobody uses"]
fn a_lab_keeps_nothing_of_its_caller_open() {
    let _alone = alone();
    lab(&["down"]);
    let directory = tempfile::tempdir().unwrap();
    let open = directory.path().join("a-lock");
    let script = "exec 9>\"$2\"; exec \"$1\" up --no-mirror --hosts 1";
    run("sh", &["-c", script, "sh", env!("CARGO_BIN_EXE_kk-lab"), open.to_str().unwrap()]);
    let files = fs::read_dir("/proc")
        .unwrap()
        .flatten()
        .filter_map(|entry| fs::read_dir(entry.path().join("fd")).ok());
    let holders =
        files.flatten().flatten().filter(|file| fs::read_link(file.path()).is_ok_and(|path| path == open));
    let holders: Vec<_> = holders.map(|file| file.path()).collect();
    lab(&["down"]);
    assert!(holders.is_empty(), "{holders:?}");
}

#[test]
#[ignore = "needs root, and a lab that nobody uses"]
fn up_works_on_what_a_crash_left() {
    let _alone = alone();
    lab(&["down"]);
    lab(&["up", "--no-mirror", "--hosts", "2"]);
    kill_everything();
    lab(&["up", "--no-mirror", "--hosts", "2"]);
    lab(&["exec", "node2", "--", "true"]);
    lab(&["down"]);
}
