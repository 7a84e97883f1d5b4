//! Files that cannot be written, and settings that cannot be read.

use super::{config, create, last_state};
use crate::cluster::control_plane::shared;
use crate::cluster::operator::{Setup, run_program};
use crate::cluster::orphans::skipped;

/// The file system for temporary files has room for small contexts only. The big object is in the snapshot, so the run
/// fails until it is gone.
#[test]
fn a_full_disk_fails_the_run_until_there_is_room() {
    let plane = shared();
    plane.kubectl("create ns full");
    create(plane, "full", "a", "1");
    let mut setup = Setup::new(plane);
    std::fs::create_dir(setup.tmp_dir()).unwrap();
    let mount = format!("mount -t tmpfs -o size=128k tmpfs {} && exec \"$@\"", setup.tmp_dir().display());
    // Without root in a user namespace of its own.
    let ways: [&[&str]; 2] = [&["unshare", "--mount"], &["unshare", "--mount", "--user", "--map-root-user"]];
    let wrapper = |way: &[&'static str]| {
        [way, &["sh", "-c"], &[mount.as_str(), "sh"]]
            .concat()
            .iter()
            .map(|word| (*word).to_owned())
            .collect::<Vec<String>>()
    };
    let works = |way: &&&[&'static str]| {
        let words = wrapper(way);
        std::process::Command::new(&words[0])
            .args(&words[1..])
            .arg("true")
            .output()
            .is_ok_and(|output| output.status.success())
    };
    let Some(way) = ways.iter().find(works) else {
        skipped("a file system of a given size can be mounted neither as this user nor in a user namespace");
        return;
    };
    let command = wrapper(way);
    setup = setup.wrapper(&command.iter().map(String::as_str).collect::<Vec<_>>());
    let config = config("full").replace("includeSnapshotsFrom: [cms]", "includeSnapshotsFrom: [cms, big]")
        + "\n- {name: big, kind: ConfigMap, executeHookOnEvent: [], executeHookOnSynchronization: false, namespace: {nameSelector: {matchNames: [full]}}, nameSelector: {matchNames: [big]}}";
    let operator = setup.hook("h", &config, "keep").start();
    operator.wait_for("the state at start", |operator| last_state(operator) == "1");
    let big = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(big.path(), "x".repeat(400_000)).unwrap();
    plane.kubectl(&format!("-n full create cm big --from-file=k={}", big.path().display()));
    let socket = operator.socket().display().to_string();
    let arguments = ["hook", "snapshot", "h", "-o", "json", "--debug-unix-socket", &socket];
    operator
        .wait_for("the big object", |operator| run_program(&arguments, &operator.out()).1.contains("xxx"));
    create(plane, "full", "a", "2");
    operator.wait_for("the message", |operator| operator.log().contains("No space left on device"));
    create(plane, "full", "b", "3");
    plane.kubectl("-n full delete cm a");
    plane.kubectl("-n full delete cm big");
    operator.wait_for("the final state", |operator| last_state(operator) == "3");
}

#[test]
fn a_temp_directory_that_cannot_be_written_fails_the_run_until_it_can() {
    let plane = shared();
    plane.kubectl("create ns no-tmp");
    create(plane, "no-tmp", "a", "1");
    let operator = Setup::new(plane).hook("h", &config("no-tmp"), "keep").start();
    operator.wait_for("the state at start", |operator| last_state(operator) == "1");
    let (tmp, aside) = (operator.hooks_dir().join("../tmp"), operator.hooks_dir().join("../aside"));
    std::fs::rename(&tmp, &aside).unwrap();
    create(plane, "no-tmp", "a", "2");
    operator.wait_for("the message", |operator| operator.log().contains("cannot write the files of the run"));
    create(plane, "no-tmp", "b", "3");
    std::fs::rename(&aside, &tmp).unwrap();
    operator.wait_for("the final state", |operator| last_state(operator) == "2,3");
}

#[test]
fn bad_input_at_start_is_said_at_once() {
    let dir = tempfile::tempdir().unwrap();
    let (code, text) = run_program(
        &[
            "start",
            "--hooks-dir",
            "none",
            "--tmp-dir",
            "tmp",
            "--listen-port",
            "0",
            "--listen-address",
            "127.0.0.1",
            "--kube-config",
            "none",
        ],
        dir.path(),
    );
    assert_eq!(code, Some(1));
    assert!(text.contains("cannot find out how to reach the Kubernetes API"), "{text}");
    let (code, text) = run_program(&["start", "--object-patcher-kube-client-timeout", "soon"], dir.path());
    assert_eq!(code, Some(1));
    assert!(text.contains("'soon' is not a duration"), "{text}");
}
