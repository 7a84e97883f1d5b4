//! Two replicas of an operator.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use crate::cluster::control_plane::shared;
use crate::cluster::operator::{Operator, Setup, signal};
use crate::cluster::proxy::Proxy;

const EVERY_SECOND: &str = "configVersion: v1\nschedule: [{crontab: '* * * * * *'}]";
const STATE: &str = "configVersion: v1\nkubernetes: [{kind: ConfigMap, namespace: {nameSelector: {matchNames: [leader]}}, labelSelector: {matchLabels: {t: x}}, jqFilter: .metadata.name}]";

fn setup(namespace: &str) -> Setup {
    Setup::new(shared())
        .flag("--hooks-reload")
        .flag("--leader-election")
        .flag(&format!("--namespace={namespace}"))
}

fn replica() -> Operator {
    setup("leader").hook("h", EVERY_SECOND, "keep").hook("state", STATE, "keep").start()
}

/// A field of the Lease of `replica`s.
fn lease(field: &str) -> String {
    shared().kubectl(&format!("-n leader get lease shell-operator -o jsonpath='{{.spec.{field}}}'"))
}

fn runs(operator: &Operator) -> usize {
    operator.contexts("h").len()
}

#[test]
fn one_acts_and_another_takes_over_when_it_is_gone() {
    shared().kubectl("create ns leader");
    let mut first = replica();
    first.wait_for("a run", |operator| runs(operator) > 0);
    let second = replica();
    second.wait_for("the message", |operator| operator.log().contains("another replica is the leader"));
    second.wait_ready();
    std::thread::sleep(Duration::from_secs(3));
    assert_eq!(runs(&second), 0);
    // After SIGTERM, it hands over at once.
    let of_first = lease("holderIdentity");
    assert_eq!(first.stop().0, Some(0));
    assert_ne!(lease("holderIdentity"), of_first);
    second.wait_for("a run", |operator| runs(operator) > 0);
    // Killed, it hands over when its Lease has run out.
    let third = replica();
    third.wait_for("the message", |operator| operator.log().contains("another replica is the leader"));
    signal(second.pid(), "KILL");
    let renewed: Timestamp = lease("renewTime").parse().unwrap();
    shared().kubectl("-n leader create cm meanwhile");
    shared().kubectl("-n leader label cm meanwhile t=x");
    third.wait_for("a run", |operator| runs(operator) > 0);
    let acquired: Timestamp = lease("acquireTime").parse().unwrap();
    assert!(acquired.duration_since(renewed) >= SignedDuration::from_secs(15), "{renewed} {acquired}");
    third.wait_for("the state", |operator| {
        operator
            .all_contexts("state")
            .last()
            .is_some_and(|context| context["objects"][0]["filterResult"] == "meanwhile")
    });
}

/// The hook needs more time to end than an unrenewed Lease lasts.
#[test]
fn nobody_takes_over_while_a_hook_comes_to_its_end() {
    shared().kubectl("create ns long-end");
    // It ends with the test, too.
    let body = "keep\nwhile [ -d $OUT ] && ! [ -e $OUT/go ]; do sleep 0.1; done";
    let replica = || {
        setup("long-end").flag("--shutdown-timeout=10m").hook("h", "configVersion: v1\nonStartup: 1", body)
    };
    let mut first = replica().start();
    first.wait_for("the run", |operator| runs(operator) == 1);
    let second = replica().start();
    second.wait_for("the message", |operator| operator.log().contains("another replica is the leader"));
    signal(first.pid(), "TERM");
    std::thread::sleep(Duration::from_secs(20));
    assert_eq!(runs(&second), 0, "both run the hook");
    std::fs::write(first.out().join("go"), "").unwrap();
    assert_eq!(first.wait_for_end(), Some(0), "{}", first.log());
    second.wait_for("the run", |operator| runs(operator) == 1);
}

#[test]
fn a_leader_that_is_cut_off_has_ended_with_its_hooks_before_another_acts() {
    shared().kubectl("create ns cut-off");
    let proxy = Proxy::start(shared());
    let stubborn = "keep\ntrap '' TERM\necho $$ > $OUT/pid\nwhile :; do sleep 1; done";
    let mut first = setup("cut-off")
        .flag(&format!("--kube-server={}", proxy.url()))
        .hook("h", EVERY_SECOND, stubborn)
        .start();
    first.wait_for("the run", |operator| !operator.file("pid").is_empty());
    let second = setup("cut-off").hook("h", EVERY_SECOND, "keep").start();
    second.wait_for("the message", |operator| operator.log().contains("another replica is the leader"));
    proxy.cut();
    assert_eq!(first.wait_for_end(), Some(1));
    assert_eq!(runs(&second), 0, "{}", first.log());
    assert!(first.log().contains("the Lease was lost"), "{}", first.log());
    // The process that adopted it may not have taken its status yet.
    let stat =
        std::fs::read_to_string(format!("/proc/{}/stat", first.file("pid").trim())).unwrap_or_default();
    assert!(stat.is_empty() || stat.contains(") Z "), "its hook has ended with it: {stat}");
    second.wait_for("a run", |operator| runs(operator) > 0);
}

#[test]
fn a_replica_that_waits_takes_over_changed_hooks_without_running_them() {
    shared().kubectl("create ns waiting");
    let mut first = setup("waiting").hook("h", EVERY_SECOND, "keep").start();
    first.wait_for("a run", |operator| runs(operator) > 0);
    let second = setup("waiting").hook("h", "configVersion: v1\nonStartup: 1", "keep").start();
    second.wait_for("the message", |operator| operator.log().contains("another replica is the leader"));
    second.put_hook(
        "h",
        "configVersion: v1\nonStartup: 1\nschedule: [{crontab: '* * * * * *', queue: q}]",
        "keep",
    );
    second.wait_for("the change", |operator| operator.log().contains("are taken over"));
    std::thread::sleep(Duration::from_secs(2));
    assert_eq!(runs(&second), 0);
    first.stop();
    second.wait_for("runs of the new hook", |operator| runs(operator) > 2);
    let names: Vec<String> = second
        .all_contexts("h")
        .iter()
        .map(|context| context["binding"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(names.iter().filter(|name| *name == "onStartup").count(), 1, "{names:?}");
}

#[test]
fn a_lease_that_is_deleted_is_made_again_by_its_holder() {
    shared().kubectl("create ns deleted");
    let first = setup("deleted").hook("h", EVERY_SECOND, "keep").start();
    first.wait_for("a run", |operator| runs(operator) > 0);
    let second = setup("deleted").hook("h", EVERY_SECOND, "keep").start();
    second.wait_for("the message", |operator| operator.log().contains("another replica is the leader"));
    let holder =
        || shared().try_kubectl("-n deleted get lease shell-operator -o jsonpath='{.spec.holderIdentity}'");
    let before = holder().unwrap();
    shared().kubectl("-n deleted delete lease shell-operator");
    first.wait_for("the new Lease", |_| holder().as_ref() == Ok(&before));
    let so_far = runs(&first);
    first.wait_for("more runs", |operator| runs(operator) > so_far + 3);
    assert_eq!(runs(&second), 0, "{}", second.log());
}
