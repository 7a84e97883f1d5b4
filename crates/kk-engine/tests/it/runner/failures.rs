//! Failures: their messages, what they stop, and retries.

use std::{sync::Arc, time::Duration};

use kk_engine::{EventKind, Failure, HostWork, Options, Outcome, Retry, Slot, Task, actions};

use crate::runner::support::{ShellHost, command, log, run, script, slot};

#[tokio::test]
async fn a_failure_names_what_ran_and_stops_what_has_not_begun() {
    let (a, b) = (ShellHost::new("a"), ShellHost::new("b"));
    // It fails while b works.
    let busy = command(&format!("until [ -e {} ]; do sleep 0.05; done", b.path("begun").display()));
    let bad = actions::Command::new("break", "echo out; echo first >&2; echo 'disk is full' >&2; exit 7")
        .hint("disk is full", "make room");
    let tasks = vec![
        Task::new("before", "")
            .on("a", log("before"))
            .on("b", script("touch $KK_ROOT/begun; sleep 2; echo running >>$KK_ROOT/log")),
        Task::new("bad", "Break it")
            .on("a", HostWork::new(vec![busy, Box::new(bad)]).provides(slot("never"))),
        Task::new("after", "").on("a", log("after")).on("b", log("after")),
        Task::new("waits", "").on("b", log("waits").needs(slot("never"))),
    ];
    let ran = run(tasks, &[&a, &b], Options::default()).await;
    assert!(!ran.report.ok && !ran.report.stopped);
    let failure = ran.failure();
    assert_eq!(failure.cause, "disk is full");
    assert_eq!(failure.code, Some(7));
    assert_eq!(failure.stderr, ["first", "disk is full"]);
    assert_eq!(failure.hint.as_deref(), Some("make room"));
    assert!(failure.command.as_deref().unwrap().starts_with("echo out"));
    assert_eq!(ran.report.failures[0].task, "bad");
    assert_eq!(a.log(), ["before"]);
    assert_eq!(b.log(), ["running"], "what runs comes to its end, and what was sent with it does not begin");
    assert_eq!(ran.skipped(), ["after@a", "after@b", "waits@b"]);
}

#[tokio::test]
async fn ignore_err_drops_the_host_and_who_needs_it_and_no_other() {
    let (a, b, c) = (ShellHost::new("a"), ShellHost::new("b"), ShellHost::new("c"));
    let joined = |host: &str| Slot::<()>::of_host("joined", host).key();
    let tasks = vec![
        Task::new("join", "")
            .on("a", script("exit 1").provides(joined("a")))
            .on("b", log("join").provides(joined("b")))
            .on("c", log("join").provides(joined("c"))),
        Task::new("needs", "").on("c", log("needs").needs(joined("a"))),
        Task::new("all", "").on("b", log("all").after(joined("a")).after(joined("b")).after(joined("c"))),
        Task::new("beside", "").background().on("a", log("beside").needs(joined("b"))),
    ];
    let options = Options { ignore_err: true, ..Options::default() };
    let ran = run(tasks, &[&a, &b, &c], options).await;
    assert_eq!(ran.report.dropped.keys().collect::<Vec<_>>(), ["a", "c"]);
    assert_eq!(b.log(), ["join", "all"]);
    assert_eq!(c.log(), ["join"]);
    assert!(!ran.report.ok);
    assert!(ran.skipped().contains(&"needs@c".to_owned()));
}

#[tokio::test]
async fn an_operation_has_its_own_time_inside_a_round_trip() {
    let host = ShellHost::new("a");
    let tasks = vec![
        Task::new("patient", "")
            .timeout(Duration::from_mins(1))
            .on("a", script("sleep 1.2; echo patient >>$KK_ROOT/log")),
        Task::new("hangs", "")
            .timeout(Duration::from_secs(3))
            .on("a", script("echo 'no peers' >&2; sleep 120; echo late >>$KK_ROOT/log")),
        Task::new("after", "").on("a", log("after")),
    ];
    let ran = run(tasks, &[&host], Options::default()).await;
    assert_eq!(ran.report.failures[0].task, "hangs");
    assert_eq!(ran.failure().cause, "no end after 3.0 s on a");
    assert_eq!(ran.failure().stderr, ["no peers"]);
    assert_eq!(host.log(), ["patient"]);
}

#[tokio::test]
async fn only_what_can_pass_is_tried_again_and_from_where_it_failed() {
    let retry = Retry { attempts: 3, delay: Duration::from_millis(20), longest: Duration::from_millis(50) };
    let host = ShellHost::new("a");
    let passing = actions::Command::new(
        "wait",
        "echo try >>$KK_ROOT/log; echo 'not ready' >&2; [ $(grep -c try $KK_ROOT/log) -ge 3 ]",
    )
    .transient_on("not ready");
    let work = HostWork::new(vec![command("echo first >>$KK_ROOT/log"), Box::new(passing)]);
    let ran =
        run(vec![Task::new("retry", "").retry(retry).on("a", work)], &[&host], Options::default()).await;
    assert!(ran.report.ok);
    assert_eq!(host.log(), ["first", "try", "try", "try"]);
    assert_eq!(ran.ended(|outcome| matches!(outcome, Outcome::Retrying { .. })).len(), 2);

    let host = ShellHost::new("a");
    let ran = run(
        vec![Task::new("wrong", "").retry(retry).on("a", script("echo try >>$KK_ROOT/log; exit 1"))],
        &[&host],
        Options::default(),
    )
    .await;
    assert!(!ran.report.ok);
    assert_eq!(host.log(), ["try"]);

    let host = ShellHost::new("a");
    host.lose(2);
    let ran =
        run(vec![Task::new("lost", "").retry(retry).on("a", log("once"))], &[&host], Options::default())
            .await;
    assert!(ran.report.ok);
    assert_eq!((host.log(), host.trips()), (vec!["once".to_owned()], 3));
}

/// The first and the second task are sent together, and each fails twice.
#[tokio::test]
async fn each_attempt_of_a_task_is_told_by_its_number() {
    let host = ShellHost::new("a");
    let retry = Retry { attempts: 3, delay: Duration::from_millis(20), longest: Duration::from_millis(50) };
    let task = |name: &'static str| {
        let text = format!(
            "echo {name} >>$KK_ROOT/log; echo 'not ready' >&2; [ $(grep -c {name} $KK_ROOT/log) -ge 3 ]"
        );
        let passing = actions::Command::new("wait", text).transient_on("not ready");
        Task::new(name, "").retry(retry).on("a", HostWork::new(vec![Box::new(passing)]))
    };
    let ran = run(vec![task("first"), task("second")], &[&host], Options::default()).await;
    assert!(ran.report.ok, "{:?}", ran.report.failures);
    let begun = ran.events.iter().filter_map(|event| match &event.kind {
        EventKind::TaskStarted { task, attempt, .. } => Some((task.as_str(), *attempt)),
        _ => None,
    });
    let begun: Vec<_> = begun.collect();
    let wanted = |name| [1, 2, 3].map(|attempt| (name, attempt));
    assert_eq!(begun, [wanted("first"), wanted("second")].concat());
}

#[tokio::test]
async fn a_lost_connection_is_tried_again_in_every_task() {
    let host = ShellHost::new("a");
    host.lose(2);
    let ran = run(vec![Task::new("t", "").on("a", log("once"))], &[&host], Options::default()).await;
    assert!(ran.report.ok, "{:?}", ran.report.failures);
    assert_eq!((host.log(), host.trips()), (vec!["once".to_owned()], 3));
    let host = ShellHost::new("a");
    host.lose(3);
    let ran = run(vec![Task::new("t", "").on("a", log("once"))], &[&host], Options::default()).await;
    assert!(ran.failure().cause.contains("lost"));
}

#[tokio::test]
async fn an_error_names_the_command_that_failed_and_its_cause() {
    let said = "echo '[init] Using v1.36' >&2; echo 'error execution phase x: deadline exceeded' >&2; \
                echo 'To see the stack trace of this error execute with --v=5 or higher' >&2; exit 3";
    let host = ShellHost::new("a");
    let text = format!("mkdir -p $KK_ROOT/x\nkk_do sh -c \"{said}\"\necho never");
    let ran = run(vec![Task::new("t", "").on("a", script(&text))], &[&host], Options::default()).await;
    let failure = ran.failure();
    assert_eq!(failure.cause, "error execution phase x: deadline exceeded");
    assert!(failure.command.as_deref().unwrap().starts_with("sh -c echo '[init]"), "{failure:?}");
    assert_eq!((failure.code, failure.stderr.len()), (Some(3), 3));

    let host = ShellHost::new("a");
    let text =
        "mkdir $KK_ROOT/y\necho 'pod is not ready' >&2; echo 'Tolerations:  :NoExecute op=Exists' >&2\nfalse";
    let ran = run(vec![Task::new("t", "").on("a", script(text))], &[&host], Options::default()).await;
    assert_eq!(ran.failure().cause, "pod is not ready");
    assert_eq!(ran.failure().command.as_deref(), Some("change something"), "not its first line");

    let host = ShellHost::new("a");
    let text = "echo 'Error: unknown flag' >&2\nkk_fail 'the scheduler does not start: Error: unknown flag'";
    let ran = run(vec![Task::new("t", "").on("a", script(text))], &[&host], Options::default()).await;
    assert_eq!(ran.failure().cause, "the scheduler does not start: Error: unknown flag");
}

#[tokio::test]
async fn output_that_is_not_understood_fails_its_task() {
    let host = ShellHost::new("a");
    let action = actions::Command::new("print", "echo nonsense")
        .output(Arc::new(|stdout, _| Err(Failure::new(format!("not a ticket: {}", stdout.trim())))));
    let tasks = vec![
        Task::new("ticket", "").on("a", HostWork::new(vec![Box::new(action)]).provides(slot("x"))),
        Task::new("next", "").on("a", script("sleep 2").needs(slot("x"))),
        Task::new("last", "").on("a", log("last")),
    ];
    let ran = run(tasks, &[&host], Options::default()).await;
    assert_eq!(ran.failure().cause, "not a ticket: nonsense");
    assert!(host.log().is_empty());
}
