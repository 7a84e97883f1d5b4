//! The end of the operator while hooks run.

use std::time::Duration;

use crate::control_plane::shared;
use crate::operator::Setup;

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
    let body = "keep\ntrap 'echo told > $OUT/told' TERM\nuntil [ -e $OUT/go ]; do sleep 0.1; done\n\
        echo '{operation: Create, object: {apiVersion: v1, kind: ConfigMap, metadata: {name: done, namespace: finish}}}' > $KUBERNETES_PATCH_PATH";
    let throttled = "configVersion: v1\nsettings: {executionMinInterval: 1h}\nschedule: [{crontab: '* * * * * *', queue: q}]";
    let mut operator = Setup::new(plane)
        .flag("--leader-election")
        .flag("--namespace=finish")
        .hook("h", "configVersion: v1\nonStartup: 1", body)
        .hook("throttled", throttled, "keep")
        .start();
    operator.wait_for("the run", |operator| !operator.contexts("h").is_empty());
    // Whoever is in the middle of a request does not hold up the end.
    let mut request = std::net::TcpStream::connect(("127.0.0.1", operator.port())).unwrap();
    std::io::Write::write_all(&mut request, b"GET /metrics HT").unwrap();
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
