//! Ctrl-C: running waits end at once, other operations finish, and nothing new begins.

use std::time::Duration;

use kk_engine::{Action, EventKind, HostWork, Options, Task, actions};

use crate::runner::support::{ShellHost, command, is_there, log, run, script};

#[tokio::test]
async fn stop_lets_running_operations_end_and_begins_nothing() {
    let host = ShellHost::new("a");
    let options = Options::default();
    let stop = options.stop.clone();
    let tasks = vec![
        // It runs in a directory inside the batch's directory, in which the file `stop` signals the stop.
        Task::new("long", "").on(
            "a",
            script(
                "touch $KK_ROOT/begun; until [ -e ../stop ]; do sleep 0.05; done; echo long >>$KK_ROOT/log",
            ),
        ),
        Task::new("next", "").on("a", log("next")),
    ];
    let begun = is_there(host.path("begun"));
    tokio::spawn(async move {
        begun.await;
        stop.cancel();
    });
    let ran = run(tasks, &[&host], options).await;
    assert_eq!(host.log(), ["long"]);
    assert!(ran.report.stopped && !ran.report.ok && ran.report.failures.is_empty());
    assert_eq!(ran.skipped(), ["next@a"]);
    assert!(ran.events.iter().any(|event| event.kind == EventKind::Stopping { at_once: false }));
}

/// The second plan of a run, which was stopped when the first plan had just ended.
#[tokio::test]
async fn nothing_begins_in_a_run_that_was_stopped_before() {
    for _ in 0..20 {
        let host = ShellHost::new("a");
        let options = Options::default();
        options.stop.cancel();
        let ran = run(vec![Task::new("t", "").on("a", log("begun"))], &[&host], options).await;
        assert!(ran.report.stopped && !ran.report.ok && !ran.report.begun && host.log().is_empty());
        assert_eq!((host.trips(), ran.skipped()), (0, vec!["t@a".to_owned()]));
    }
}

#[tokio::test]
async fn stop_ends_what_only_waits_within_two_seconds() {
    let wait = actions::WaitUntil::new("it is there", "[ -e /nowhere ]");
    let hangs = actions::WaitUntil::new("it answers", "sleep 60");
    // As with kubectl: the waiting process is a child of the script, and part of a pipe.
    let rollout =
        actions::Command::new("wait for it", "sleep 60 | cat; echo waited >>$KK_ROOT/log").only_waits();
    for wait in [Box::new(wait) as Box<dyn Action>, Box::new(hangs), Box::new(rollout)] {
        let host = ShellHost::new("a");
        let options = Options::default();
        let tasks = vec![
            Task::new("wait", "").on("a", HostWork::new(vec![command("echo begun >>$KK_ROOT/log"), wait])),
            Task::new("next", "").on("a", log("next")),
        ];
        let stop = options.stop.clone();
        let log = host.path("log");
        let stopped = tokio::spawn(async move {
            is_there(log).await;
            tokio::time::sleep(Duration::from_millis(300)).await;
            stop.cancel();
            std::time::Instant::now()
        });
        let ran = run(tasks, &[&host], options).await;
        let took = stopped.await.unwrap().elapsed();
        println!("a wait ended {took:?} after the stop");
        // Far below the minute that it would wait, even if this machine is busy.
        assert!(took < Duration::from_secs(10), "{took:?}");
        assert!(ran.report.stopped && !ran.report.ok && ran.report.failures.is_empty(), "{:?}", ran.report);
        assert_eq!(host.log(), ["begun"]);
    }
}

#[tokio::test]
async fn cancel_ends_running_operations_at_once() {
    let host = ShellHost::new("a");
    let options = Options::default();
    let cancel = options.cancel.clone();
    let tasks = vec![
        Task::new("long", "").on("a", script("touch $KK_ROOT/begun; sleep 300; echo long >>$KK_ROOT/log")),
    ];
    let begun = is_there(host.path("begun"));
    tokio::spawn(async move {
        begun.await;
        cancel.cancel();
    });
    let ran = run(tasks, &[&host], options).await;
    assert!(ran.report.stopped && !ran.report.ok && ran.report.failures.is_empty(), "{:?}", ran.report);
    assert!(host.log().is_empty());
    assert!(ran.report.begun && ran.report.changed == 0, "it may have changed something");
    assert!(!ran.events.iter().any(|event| matches!(event.kind, EventKind::Note { .. })), "{:?}", ran.events);
}
