//! The end of the operator while hooks run.

use std::time::Duration;

use crate::cluster::control_plane::shared;
use crate::cluster::operator::{Operator, Setup};
use crate::cluster::proxy::{Fault, Proxy};

#[test]
fn the_end_of_the_operator_is_the_end_of_a_running_hook() {
    let plane = shared();
    let body = "trap 'echo told > $OUT/end; exit 1' TERM\nkeep\nsleep 100 & wait";
    let mut operator = Setup::new(plane)
        .flag("--shutdown-timeout=11s")
        .hook("h", "configVersion: v1\nonStartup: 1", body)
        .start();
    operator.wait_for("the run", |operator| !operator.contexts("h").is_empty());
    let (code, time) = operator.stop();
    // A hook that does not end before it is killed makes the code 1.
    assert_eq!(code, Some(0), "{}", operator.log());
    assert!(time >= Duration::from_secs(1), "it had its time: {time:?}");
    assert_eq!(operator.file("end"), "told\n");
}

/// The hook is in the middle of its work, and another one waits because it may not run that often.
#[test]
fn the_end_of_the_operator_lets_a_running_hook_finish_and_gives_the_lease_back() {
    let plane = shared();
    plane.kubectl("create ns finish");
    let body = "keep\ntrap 'echo told > $OUT/told' TERM\nwhile [ -d $OUT ] && ! [ -e $OUT/go ]; do sleep 0.1; done\n\
        echo '{operation: Create, object: {apiVersion: v1, kind: ConfigMap, metadata: {name: done, namespace: finish}}}' > $KUBERNETES_PATCH_PATH";
    let throttled = "configVersion: v1\nsettings: {executionMinInterval: 1h}\nschedule: [{crontab: '* * * * * *', queue: q}]";
    let mut operator = Setup::new(plane)
        .flag("--leader-election")
        .flag("--namespace=finish")
        .hook("h", "configVersion: v1\nonStartup: 1", body)
        .hook("throttled", throttled, "keep")
        .start();
    operator.wait_for("the run", |operator| !operator.contexts("h").is_empty());
    // A client in the middle of a request does not hold up the end.
    let mut request = std::net::TcpStream::connect(("127.0.0.1", operator.port())).unwrap();
    std::io::Write::write_all(&mut request, b"GET /metrics HT").unwrap();
    let mut question = std::os::unix::net::UnixStream::connect(operator.socket()).unwrap();
    std::io::Write::write_all(&mut question, b"GET /queue/list HT").unwrap();
    let go = operator.out().join("go");
    let helper = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_secs(3));
        std::fs::write(go, "").unwrap();
    });
    let (code, _) = operator.stop();
    helper.join().unwrap();
    assert_eq!(code, Some(0), "{}", operator.log());
    assert_eq!(operator.file("told"), "", "it was not disturbed");
    plane.kubectl("-n finish get cm done");
    let holder = "-n finish get lease shell-operator -o jsonpath='{.spec.holderIdentity}'";
    assert_eq!(plane.kubectl(holder), "", "the next replica can act at once");
}

/// SIGTERM and SIGKILL are sent within the time that the operator has; with SIGKILL the hook has ended, and the Lease is
/// released.
#[test]
fn a_hook_that_does_not_want_to_end_is_killed_when_the_time_is_over() {
    let plane = shared();
    plane.kubectl("create ns stubborn");
    let body = "trap '' TERM\nkeep\nwhile :; do sleep 1; done";
    let mut operator = Setup::new(plane)
        .flag("--shutdown-timeout=1s")
        .flag("--leader-election")
        .flag("--namespace=stubborn")
        .hook("h", "configVersion: v1\nonStartup: 1", body)
        .start();
    operator.wait_for("the run", |operator| !operator.contexts("h").is_empty());
    assert_eq!(operator.stop().0, Some(0), "{}", operator.log());
    let holder = "-n stubborn get lease shell-operator -o jsonpath='{.spec.holderIdentity}'";
    assert_eq!(plane.kubectl(holder), "");
}

/// Prints no configuration, and records that it was queried.
fn silent(setup: &Setup) -> String {
    format!("#!/bin/bash\ntouch {}/asked\nsleep 1000\n", setup.out().display())
}

fn ends_when_asked(mut operator: Operator) {
    operator.wait_for("the question", |operator| operator.out().join("asked").exists());
    crate::cluster::operator::signal(operator.pid(), "TERM");
    assert_eq!(operator.wait_for_end(), Some(0), "{}", operator.log());
}

#[test]
fn the_end_does_not_wait_for_a_configuration() {
    let setup = Setup::new(shared());
    let text = silent(&setup);
    ends_when_asked(setup.program("h", &text).start());
}

#[test]
fn the_end_does_not_wait_for_a_configuration_that_a_reload_asks_for() {
    let setup = Setup::new(shared()).flag("--hooks-reload");
    let text = silent(&setup);
    let operator = setup.hook("h", "configVersion: v1\nonStartup: 1", "keep").start();
    operator.wait_ready();
    crate::cluster::operator::write_program(&operator.hooks_dir().join("new"), &text);
    ends_when_asked(operator);
}

#[test]
fn the_end_does_not_wait_for_an_api_server_that_does_not_answer() {
    let plane = shared();
    let proxy = Proxy::start(plane);
    proxy.disturb("GET /api", Fault::Held);
    let mut operator = Setup::new(plane)
        .flag(&format!("--kube-server={}", proxy.url()))
        .hook("h", "configVersion: v1\nkubernetes: [{kind: Pod}]", "keep")
        .start();
    operator.wait_for("the question", |_| proxy.requests("GET /api") > 0);
    crate::cluster::operator::signal(operator.pid(), "TERM");
    assert_eq!(operator.wait_for_end(), Some(0), "{}", operator.log());
    proxy.disturb_no_more();
}

/// After a first signal the hook continues; a user at a terminal does not want to wait for it.
#[test]
fn a_second_signal_ends_everything_at_once() {
    let body = "trap '' TERM\nsleep 1000 &\necho $! > $OUT/child\nwait";
    let mut operator = Setup::new(shared())
        .flag("--shutdown-timeout=10m")
        .hook("h", "configVersion: v1\nonStartup: 1", body)
        .start();
    operator.wait_for("the run", |operator| operator.file("child").ends_with('\n'));
    crate::cluster::operator::signal(operator.pid(), "TERM");
    operator.wait_for("the first signal", |operator| operator.log().contains("Shutdown begins"));
    crate::cluster::operator::signal(operator.pid(), "INT");
    assert_eq!(operator.wait_for_end(), Some(128 + 2), "{}", operator.log());
    let stat = format!("/proc/{}/stat", operator.file("child").trim());
    operator.wait_for("the end of its child", |_| {
        std::fs::read_to_string(&stat).map_or(true, |text| text.contains(") Z "))
    });
}
