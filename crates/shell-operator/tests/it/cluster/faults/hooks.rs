//! Hooks that fail, hang, write much, or leave processes behind.

use std::time::Duration;

use super::{config, create, last_state, state_of};
use crate::cluster::control_plane::shared;
use crate::cluster::operator::{Operator, Setup};

/// The delays add up to 41 to 46 s.
#[test]
fn a_hook_that_fails_five_times_sees_the_final_state() {
    let plane = shared();
    plane.kubectl("create ns five");
    create(plane, "five", "a", "1");
    let body = "[ $(grep -sc x $OUT/failures) = 5 ] || { [ -e $OUT/fail ] && { echo x >> $OUT/failures; exit 1; }; }\nkeep";
    let operator = Setup::new(plane).hook("h", &config("five"), body).start();
    operator.wait_for("the state at start", |operator| last_state(operator) == "1");
    std::fs::write(operator.out().join("fail"), "").unwrap();
    create(plane, "five", "a", "2");
    operator.wait_for("a failure", |operator| operator.file("failures") == "x\n");
    create(plane, "five", "b", "3");
    plane.kubectl("-n five delete cm a");
    operator
        .wait_long_for(Duration::from_secs(90), "the final state", |operator| last_state(operator) == "3");
    assert_eq!(operator.file("failures").len(), 10);
    assert_eq!(operator.contexts("h").len(), 2, "what came meanwhile is combined with what failed");
    let events: Vec<String> = operator.all_contexts("h")[1..]
        .iter()
        .map(|context| {
            format!(
                "{}:{}",
                context["watchEvent"].as_str().unwrap(),
                context["filterResult"].as_str().unwrap()
            )
        })
        .collect();
    assert_eq!(events, ["Modified:2", "Added:3", "Deleted:2"]);
}

#[test]
fn hooks_that_hang_write_much_or_leave_children_see_the_final_state() {
    let plane = shared();
    plane.kubectl("create ns trouble");
    create(plane, "trouble", "a", "1");
    let hang = "settings: {executionTimeout: 6s}";
    let faults = [
        ("hangs", hang, "sleep 1000"),
        ("stays", hang, "trap '' TERM; (trap '' TERM; sleep 1000; sleep 1000) & sleep 1000; sleep 1000"),
        ("loud", "", "head -c 100000000 /dev/zero | tr '\\0' 'x' >&2; exit 1"),
        ("leaves", "", "sleep 300 & setsid sleep 300 & echo why >&2; exit 1"),
    ];
    let mut setup = Setup::new(plane);
    for (name, settings, fault) in faults {
        let config = format!(
            "{}\n{settings}",
            config("trouble").replace("jqFilter", &format!("queue: {name}, jqFilter"))
        );
        let body = format!(
            "if [ -e $OUT/go ] && [ ! -e $OUT/{name}-had ]; then touch $OUT/{name}-had; {fault}\nfi\nkeep"
        );
        setup = setup.hook(name, &config, &body);
    }
    let operator = setup.start();
    operator.wait_ready();
    std::fs::write(operator.out().join("go"), "").unwrap();
    create(plane, "trouble", "a", "2");
    operator.wait_for("the faults", |operator| {
        faults.iter().all(|(name, ..)| operator.out().join(format!("{name}-had")).exists())
    });
    create(plane, "trouble", "b", "3");
    plane.kubectl("-n trouble delete cm a");
    for (name, ..) in faults {
        operator.wait_for("the final state", |operator| state_of(operator, name) == "3");
    }
    let log = operator.log();
    assert_eq!(log.matches("it did not end within 6s").count(), 2, "{log}");
    assert!(log.contains("leaves FAILED: why"), "an open pipe does not hide why: {log}");
}

#[test]
fn patches_are_done_though_the_hook_failed_when_it_says_so() {
    let plane = shared();
    plane.kubectl("create ns ignore");
    plane.kubectl("-n ignore create cm target");
    let body = r#"
patch() { echo "{\"operation\": \"MergePatch\", \"kind\": \"ConfigMap\", \"namespace\": \"ignore\", \"name\": \"target\", \"mergePatch\": {\"data\": {\"$1\": \"yes\"}}, \"ignoreHookError\": $2}"; }
{ patch marked true; patch unmarked false; } > $KUBERNETES_PATCH_PATH
[ -e $OUT/good ] && exit 0
exit 1"#;
    let operator = Setup::new(plane).hook("h", "configVersion: v1\nonStartup: 1", body).start();
    let data = || plane.kubectl("-n ignore get cm target -o jsonpath='{.data}'");
    operator.wait_for("the marked patch", |_| data() == r#"{"marked":"yes"}"#);
    operator.wait_for("the failure", |operator| operator.log().contains("Hook failed. Will retry"));
    assert_eq!(data(), r#"{"marked":"yes"}"#);
    std::fs::write(operator.out().join("good"), "").unwrap();
    operator.wait_for("both", |_| data() == r#"{"marked":"yes","unmarked":"yes"}"#);
}

#[test]
fn a_hook_may_write_much_fail_and_hang() {
    let plane = shared();
    plane.kubectl("create ns bad");
    let loud =
        "keep\nhead -c 100000000 /dev/zero | tr '\\0' 'x'; head -c 100000000 /dev/zero | tr '\\0' 'y' >&2";
    let hangs = "configVersion: v1\nonStartup: 2\nsettings: {executionTimeout: 4s}";
    let operator = Setup::new(plane)
        .hook("loud", "configVersion: v1\nonStartup: 1", loud)
        .hook("hangs", hangs, "keep\n[ $(ls $OUT | grep -c hangs) = 1 ] && sleep 1000\nexit 0")
        .start();
    operator.wait_ready();
    assert_eq!(operator.contexts("loud").len(), 1);
    assert_eq!(operator.contexts("hangs").len(), 2);
    assert!(operator.log().contains("it did not end within 4s (settings.executionTimeout) and was killed"));
    let status = std::fs::read_to_string(format!("/proc/{}/status", operator.pid())).unwrap();
    let peak = status.lines().find(|line| line.starts_with("VmHWM")).unwrap();
    let kib: u64 = peak.split_whitespace().nth(1).unwrap().parse().unwrap();
    assert!(kib < 100_000, "{peak}");
    assert_eq!(operator.tmp_files(), 0, "files of runs are removed");
}

/// Nothing bounds its time, but it can be seen which task its queue waits for.
#[test]
fn a_hook_that_does_not_end_is_seen_from_outside() {
    let config = "configVersion: v1\nonStartup: 1";
    let setup = Setup::new(shared()).flag("--shutdown-timeout=1s");
    let mut operator = setup.hook("endless", config, "touch $OUT/begun; exec sleep 1000").start();
    let blocked = |operator: &Operator| {
        let text = operator.get("/metrics").unwrap_or_default();
        let name = r#"shell_operator_tasks_queue_head_seconds{queue="main"} "#;
        let value = text.lines().find_map(|line| line.strip_prefix(name));
        value.and_then(|value| value.parse::<f64>().ok()).is_some_and(|seconds| seconds > 0.0)
    };
    operator.wait_for("the run", |operator| operator.out().join("begun").exists() && blocked(operator));
    operator.stop();
}
