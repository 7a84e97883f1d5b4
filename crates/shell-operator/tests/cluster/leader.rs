//! Two replicas of an operator.

use std::time::{Duration, Instant};

use crate::control_plane::shared;
use crate::operator::{Operator, Setup, signal};

fn replica() -> Operator {
    Setup::new(shared())
        .hook("h", "configVersion: v1\nschedule: [{crontab: '* * * * * *'}]", "keep")
        .flag("--leader-election")
        .flag("--namespace=leader")
        .start()
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
    // Told to end, it hands over at once.
    assert_eq!(first.stop().0, Some(0));
    let handed = Instant::now();
    second.wait_for("a run", |operator| runs(operator) > 0);
    assert!(handed.elapsed() < Duration::from_secs(8), "{:?}", handed.elapsed());
    // Killed, it hands over when its Lease has run out.
    let third = replica();
    third.wait_for("the message", |operator| operator.log().contains("another replica is the leader"));
    signal(second.pid(), "KILL");
    let killed = Instant::now();
    third.wait_for("a run", |operator| runs(operator) > 0);
    let time = killed.elapsed();
    assert!(time > Duration::from_secs(10) && time < Duration::from_secs(20), "{time:?}");
}
