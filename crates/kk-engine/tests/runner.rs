//! What a run does on hosts that really run their scripts.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]

mod support;

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use kk_engine::{
    Action, Apply, Change, EventKind, Facts, Failure, HostWork, Module, Options, Outcome, Pipeline, Plan,
    Redactor, Retry, Script, Slot, Task, Turn, testing,
};
use support::{ShellHost, command, log, run, run_with, script, slot};

#[tokio::test]
async fn adjacent_scripts_of_a_lane_are_one_round_trip_in_order() {
    let host = ShellHost::new("a");
    let names = ["one", "two", "three", "four"];
    let tasks = names.map(|name| Task::new(name, name).on("a", log(name))).into();
    let ran = run(tasks, &[&host], Options::default()).await;
    assert!(ran.report.ok);
    assert_eq!(host.log(), names);
    assert_eq!(host.trips(), 1);
    assert_eq!(ran.report.changed, 4);
    assert_eq!(ran.report.round_trips["a"], 1);
    assert_eq!(ran.ended(|outcome| matches!(outcome, Outcome::Changed { .. })).len(), 4);
    let kinds: Vec<_> = ran.events.iter().map(|event| std::mem::discriminant(&event.kind)).collect();
    assert_eq!(kinds.len(), 4 * 2 + 1, "started and finished each, the module: {:?}", ran.events);
}

#[tokio::test]
async fn a_task_is_told_when_it_begins_and_ends_and_not_at_the_end_of_the_round_trip() {
    let host = ShellHost::new("a");
    let tasks = vec![
        Task::new("slow", "").on("a", script("sleep 0.6")),
        Task::new("next", "").on("a", script("sleep 0.6")),
    ];
    let ran = run(tasks, &[&host], Options::default()).await;
    let at =
        |wanted: fn(&EventKind) -> bool| ran.events.iter().find(|event| wanted(&event.kind)).unwrap().at_ms;
    let slow = at(|kind| matches!(kind, EventKind::TaskStarted { task, .. } if task == "slow"));
    let next = at(|kind| matches!(kind, EventKind::TaskStarted { task, .. } if task == "next"));
    let end = at(|kind| matches!(kind, EventKind::TaskFinished { task, .. } if task == "next"));
    // Told at the end, one of the two would take no time. A busy machine only makes them longer.
    assert!(next - slow > 300 && end - next > 300, "{slow} {next} {end}");
    assert_eq!(host.trips(), 1);
}

/// Writes the ticket into the host's log.
struct Use(Slot<String>);
impl Action for Use {
    fn check(&self, _facts: &Facts) -> Change {
        Change::needed("join")
    }
    fn apply(&self, _facts: &Facts) -> Apply {
        let slot = self.0.clone();
        Apply::Late(Box::new(move |slots| {
            let ticket = slots.get(&slot).ok_or_else(|| Failure::new("no ticket"))?;
            Ok(Script::new("cat ticket >>$KK_ROOT/log").with_file("ticket", ticket.as_bytes()))
        }))
    }
}

#[tokio::test]
async fn lanes_wait_for_each_other_by_slots() {
    let (a, b) = (ShellHost::new("a"), ShellHost::new("b"));
    let ticket = Slot::<String>::new("ticket");
    let reader = ticket.clone();
    let make =
        kk_engine::actions::Command::new("make ticket", "sleep 0.3; echo 'the ticket'; echo noise >&2")
            .output(Arc::new(move |stdout, slots| {
                slots.fill(&ticket, stdout.to_owned());
                Ok(())
            }));
    let tasks = vec![
        Task::new("make", "").on("a", HostWork::new(vec![Box::new(make)]).provides(reader.key())),
        Task::new("join", "")
            .on("a", log("self").needs(reader.key()))
            .on("b", HostWork::new(vec![Box::new(Use(reader.clone()))]).needs(reader.key())),
    ];
    let ran = run(tasks, &[&a, &b], Options::default()).await;
    assert!(ran.report.ok, "{:?}", ran.report);
    assert_eq!(b.log(), ["the", "ticket"]);
    assert_eq!(a.log(), ["self"]);
    assert_eq!(a.trips(), 1, "a slot that the same batch fills does not cut it");
}

#[tokio::test]
async fn a_task_beside_does_not_hold_up_its_lane() {
    let host = ShellHost::new("a");
    let tasks = vec![
        Task::new("images", "")
            .background()
            .on("a", script("sleep 0.8; echo images >>$KK_ROOT/log").provides(slot("images"))),
        Task::new("etcd", "").on("a", log("etcd")),
        Task::new("join", "").on("a", log("join").needs(slot("images"))),
    ];
    let ran = run(tasks, &[&host], Options::default()).await;
    assert!(ran.report.ok);
    assert_eq!(host.log(), ["etcd", "images", "join"]);
    assert_eq!(host.trips(), 3);
}

#[tokio::test]
async fn a_failure_names_what_ran_and_stops_what_has_not_begun() {
    let (a, b) = (ShellHost::new("a"), ShellHost::new("b"));
    let bad = kk_engine::actions::Command::new(
        "break",
        "echo out; echo first >&2; echo 'disk is full' >&2; exit 7",
    )
    .hint("disk is full", "make room");
    let tasks = vec![
        Task::new("before", "")
            .on("a", log("before"))
            .on("b", script("sleep 0.8; echo running >>$KK_ROOT/log")),
        Task::new("bad", "Break it").on("a", HostWork::new(vec![Box::new(bad)]).provides(slot("never"))),
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
async fn stop_lets_running_operations_end_and_begins_nothing() {
    let host = ShellHost::new("a");
    let options = Options::default();
    let stop = options.stop.clone();
    let tasks = vec![
        Task::new("long", "").on("a", script("sleep 1; echo long >>$KK_ROOT/log")),
        Task::new("next", "").on("a", log("next")),
    ];
    tokio::spawn(async move {
        tokio::time::sleep(Duration::from_millis(300)).await;
        stop.cancel();
    });
    let ran = run(tasks, &[&host], options).await;
    assert_eq!(host.log(), ["long"]);
    assert!(ran.report.stopped && !ran.report.ok && ran.report.failures.is_empty());
    assert_eq!(ran.skipped(), ["next@a"]);
    assert!(ran.events.iter().any(|event| event.kind == EventKind::Stopping { at_once: false }));
}

#[tokio::test]
async fn stop_ends_what_only_waits_within_two_seconds() {
    let wait = kk_engine::actions::WaitUntil::new("it is there", "[ -e /nowhere ]");
    let hangs = kk_engine::actions::WaitUntil::new("it answers", "sleep 60");
    // As kubectl does it: the program that waits is a child of the script, and of a pipe.
    let rollout =
        kk_engine::actions::Command::new("wait for it", "sleep 60 | cat; echo waited >>$KK_ROOT/log")
            .only_waits();
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
            while !log.exists() {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
            tokio::time::sleep(Duration::from_millis(300)).await;
            stop.cancel();
            std::time::Instant::now()
        });
        let ran = run(tasks, &[&host], options).await;
        let took = stopped.await.unwrap().elapsed();
        println!("a wait ended {took:?} after the stop");
        // Far below the minute that it would wait, whatever else this machine does.
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
    let tasks = vec![Task::new("long", "").on("a", script("sleep 15; echo long >>$KK_ROOT/log"))];
    tokio::spawn(async move {
        tokio::time::sleep(Duration::from_millis(300)).await;
        cancel.cancel();
    });
    let began = std::time::Instant::now();
    let ran = run(tasks, &[&host], options).await;
    assert!(began.elapsed() < Duration::from_secs(5));
    assert!(ran.report.stopped && !ran.report.ok && ran.report.failures.is_empty(), "{:?}", ran.report);
    assert!(host.log().is_empty());
    assert!(!ran.events.iter().any(|event| matches!(event.kind, EventKind::Note { .. })), "{:?}", ran.events);
}

#[tokio::test]
async fn an_operation_has_its_own_time_inside_a_round_trip() {
    let host = ShellHost::new("a");
    let tasks = vec![
        Task::new("patient", "")
            .timeout(Duration::from_mins(1))
            .on("a", script("sleep 1.2; echo patient >>$KK_ROOT/log")),
        Task::new("hangs", "")
            .timeout(Duration::from_secs(1))
            .on("a", script("echo 'no peers' >&2; sleep 30; echo late >>$KK_ROOT/log")),
        Task::new("after", "").on("a", log("after")),
    ];
    let began = std::time::Instant::now();
    let ran = run(tasks, &[&host], Options::default()).await;
    assert!(began.elapsed() < Duration::from_secs(6));
    assert_eq!(ran.report.failures[0].task, "hangs");
    assert_eq!(ran.failure().cause, "no end after 1.0 s on a");
    assert_eq!(ran.failure().stderr, ["no peers"]);
    assert_eq!(host.log(), ["patient"]);
}

#[tokio::test]
async fn only_what_can_pass_is_tried_again_and_from_where_it_failed() {
    let retry = Retry { attempts: 3, delay: Duration::from_millis(20), longest: Duration::from_millis(50) };
    let host = ShellHost::new("a");
    let passing = kk_engine::actions::Command::new(
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

#[tokio::test]
async fn a_rolling_task_works_on_one_host_after_the_other() {
    let hosts = ["a", "b", "c"].map(ShellHost::new);
    let shared = tempfile::tempdir().unwrap();
    let text = format!("mkdir {0}/busy; sleep 0.1; rmdir {0}/busy", shared.path().display());
    let task =
        hosts.iter().zip(["a", "b", "c"]).fold(Task::new("upgrade", "").concurrency(1), |task, (_, name)| {
            let work = HostWork::new(vec![command(&text), command(&text)]);
            task.on(name, work)
        });
    let ran = run(vec![task], &hosts.each_ref(), Options::default()).await;
    assert!(ran.report.ok, "{:?}", ran.report.failures);
}

/// A task that one host does about another.
fn about(name: &str, on: &str, host: &str, text: &str) -> Task {
    Task::new(name.to_owned(), name.to_owned()).on(on, script(text).about(host))
}

/// The turns of a rolling upgrade: drain from a, replace on the host itself, uncordon from a.
fn upgrade(order: [&'static str; 3], text: impl Fn(&str, &str) -> String) -> Vec<Task> {
    let turn = || Turn::one_by_one("upgrade").order(order);
    let mut tasks = Vec::new();
    for host in order {
        let drained = Slot::<()>::of_host("drained", host).key();
        let replaced = Slot::<()>::of_host("replaced", host).key();
        let mut drain = about(&format!("drain_{host}"), "a", host, &text("drain", host)).turn(turn());
        drain.hosts.get_mut("a").unwrap().provides.push(drained.clone());
        let replace = script(&text("replace", host)).needs(drained).provides(replaced.clone());
        tasks.push(drain);
        tasks.push(Task::new(format!("replace_{host}"), "").turn(turn()).on(host, replace));
        let uncordon = about(&format!("uncordon_{host}"), "a", host, &text("uncordon", host)).turn(turn());
        tasks.push(uncordon);
        tasks.last_mut().unwrap().hosts.get_mut("a").unwrap().needs.push(replaced);
    }
    tasks
}

#[tokio::test]
async fn a_turn_is_held_over_the_tasks_of_a_host_and_turns_follow_the_order() {
    let hosts = ["a", "b", "c"].map(ShellHost::new);
    let shared = tempfile::tempdir().unwrap();
    let text = |what: &str, host: &str| format!("echo {what}-{host} >>{}/log", shared.path().display());
    let ran = run(upgrade(["c", "a", "b"], text), &hosts.each_ref(), Options::default()).await;
    assert!(ran.report.ok, "{:?}", ran.report.failures);
    let log = std::fs::read_to_string(shared.path().join("log")).unwrap();
    let wanted: Vec<String> = ["c", "a", "b"]
        .iter()
        .flat_map(|host| ["drain", "replace", "uncordon"].map(|what| format!("{what}-{host}")))
        .collect();
    assert_eq!(log.lines().collect::<Vec<_>>(), wanted);
    let drained = ran.events.iter().any(|event| {
        matches!(&event.kind, EventKind::TaskFinished { host, task, .. } if host == "b" && task == "drain_b")
    });
    assert!(drained, "a drain is shown as the host's that it is about: {:?}", ran.events);
}

#[tokio::test]
async fn a_turn_that_fails_is_the_last_whatever_ignore_err_says() {
    let hosts = ["a", "b", "c"].map(ShellHost::new);
    let shared = tempfile::tempdir().unwrap();
    let text = |what: &str, host: &str| {
        let fails = if (what, host) == ("replace", "b") { "; exit 1" } else { "" };
        format!("echo {what}-{host} >>{}/log{fails}", shared.path().display())
    };
    let options = Options { ignore_err: true, ..Options::default() };
    let ran = run(upgrade(["a", "b", "c"], text), &hosts.each_ref(), options).await;
    let log = std::fs::read_to_string(shared.path().join("log")).unwrap();
    assert_eq!(
        log.lines().collect::<Vec<_>>(),
        ["drain-a", "replace-a", "uncordon-a", "drain-b", "replace-b"],
        "{:?}",
        ran.report
    );
    assert_eq!(ran.failure().code, Some(1));
    let skipped = ran.skipped();
    assert_eq!(skipped, ["drain_c@c", "replace_c@c", "uncordon_b@b", "uncordon_c@c"]);
}

#[tokio::test]
async fn a_rolling_task_that_fails_reaches_one_host_only() {
    let hosts = ["a", "b", "c"].map(ShellHost::new);
    let task = ["a", "b", "c"].iter().fold(Task::new("restart", "Restart").concurrency(1), |task, name| {
        task.on(name, script("echo restart >>$KK_ROOT/log; exit 1"))
    });
    let options = Options { ignore_err: true, ..Options::default() };
    let ran = run(vec![task], &hosts.each_ref(), options).await;
    assert_eq!(hosts.iter().map(|host| host.log().len()).sum::<usize>(), 1);
    assert_eq!((ran.report.failures.len(), ran.skipped().len()), (1, 2));
}

#[tokio::test]
async fn a_barrier_opens_when_all_have_come() {
    let (a, b) = (ShellHost::new("a"), ShellHost::new("b"));
    let shared = tempfile::tempdir().unwrap();
    let word = |word: &str| script(&format!("sleep 0.2; echo {word} >>{}/log", shared.path().display()));
    let stopped = |host: &str| Slot::<()>::of_host("stopped", host).key();
    let tasks = || {
        vec![
            Task::new("stop", "")
                .on("a", word("stop").provides(stopped("a")))
                .on("b", word("stop").provides(stopped("b"))),
            Task::barrier("all_stopped", ["a", "b"].map(stopped), slot("all_stopped")),
            Task::new("start", "")
                .on("a", word("start").needs(slot("all_stopped")))
                .on("b", word("start").needs(slot("all_stopped"))),
        ]
    };
    let ran = run(tasks(), &[&a, &b], Options::default()).await;
    assert!(ran.report.ok, "{:?}", ran.report);
    let log = std::fs::read_to_string(shared.path().join("log")).unwrap();
    assert_eq!(log.lines().collect::<Vec<_>>(), ["stop", "stop", "start", "start"]);
    assert_eq!(ran.events.len(), 4 * 2 + 1, "a barrier is shown nowhere: {:?}", ran.events);

    let mut fails = tasks();
    fails[0].hosts.insert("b".into(), script("exit 1").provides(stopped("b")));
    let ran = run(fails, &[&a, &b], Options { ignore_err: true, ..Options::default() }).await;
    assert_eq!(ran.skipped(), ["start@a", "start@b"]);
}

#[tokio::test]
async fn a_wait_gives_its_fork_to_a_host_that_works() {
    let (a, b) = (ShellHost::new("a"), ShellHost::new("b"));
    let flag = a.path("flag").display().to_string();
    let wait = kk_engine::actions::WaitUntil::new("b has worked", format!("[ -e {flag} ]"));
    let begins = HostWork::new(vec![command("echo begun >>$KK_ROOT/log"), Box::new(wait)]);
    let tasks = vec![
        Task::new("wait", "").on("a", begins),
        Task::new("work", "").on("b", script(&format!("sleep 0.3; : >{flag}"))),
    ];
    let ran = run(tasks, &[&a, &b], Options { forks: 1, ..Options::default() }).await;
    assert!(ran.report.ok, "{:?}", ran.report.failures);
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
async fn notes_of_operations_that_succeed_are_heard() {
    let host = ShellHost::new("a");
    let text = "kk_note 'kernel module x is in use, it stays'; echo noise >&2";
    let ran = run(vec![Task::new("t", "").on("a", script(text))], &[&host], Options::default()).await;
    let notes = ran.events.iter().filter_map(|event| match &event.kind {
        EventKind::Note { host, message } => Some((host.as_deref(), message.as_str())),
        _ => None,
    });
    assert_eq!(notes.collect::<Vec<_>>(), [(Some("a"), "kernel module x is in use, it stays")]);
}

#[tokio::test]
async fn forks_limit_the_hosts_that_work_but_not_those_that_wait() {
    let (a, b) = (ShellHost::new("a"), ShellHost::new("b"));
    let tasks = vec![
        Task::new("first", "").on("a", log("a").needs(slot("b"))),
        Task::new("second", "").on("b", log("b").provides(slot("b"))),
    ];
    let ran = run(tasks, &[&a, &b], Options { forks: 1, ..Options::default() }).await;
    assert!(ran.report.ok);
}

#[tokio::test]
async fn secrets_that_a_program_prints_are_in_no_event_and_no_report() {
    let host = ShellHost::new("a");
    let tasks =
        vec![Task::new("leak", "").on("a", script("echo 'bad password hunter2-sentinel' >&2; exit 1"))];
    let redactor = Redactor::new(["hunter2-sentinel".to_owned()]);
    let ran = run_with(tasks, &[&host], Options::default(), redactor).await;
    let told = format!("{:?} {:?} {}", ran.report, ran.events, serde_json::to_string(&ran.events).unwrap());
    assert!(told.contains("bad password ***") && !told.contains("sentinel"), "{told}");
}

#[tokio::test]
async fn each_operation_has_its_own_shell_directory_and_files() {
    let host = ShellHost::new("a");
    let file = |content: &str| {
        let put = kk_engine::actions::Command::new(
            "put",
            "cat 'it is' >>$KK_ROOT/log; X=set; cd /; [ -z \"${Y-}\" ]; Y=set",
        );
        Box::new(put.file("it is", content.as_bytes())) as Box<dyn Action>
    };
    let fails_in_the_middle = command("false; echo reached >>$KK_ROOT/log");
    let work = HostWork::new(vec![file("one\n"), file("two\n"), fails_in_the_middle]);
    let ran = run(vec![Task::new("t", "").on("a", work)], &[&host], Options::default()).await;
    assert_eq!(host.log(), ["one", "two"]);
    assert_eq!(ran.failure().cause, "it ended with code 1");
}

#[tokio::test]
async fn a_root_for_tests_in_the_environment_of_a_host_is_ignored() {
    let host = ShellHost::with_foreign_root("a");
    let work = script("echo \"root=[$KK_ROOT] state=[$KK_STATE]\" >&2; exit 1");
    let ran = run(vec![Task::new("t", "").on("a", work)], &[&host], Options::default()).await;
    assert_eq!(ran.failure().cause, "root=[] state=[/etc/kubekey]");
}

#[tokio::test]
async fn what_a_script_prints_reaches_the_slot_exactly() {
    for (text, wanted) in [
        ("printf 'a\\n\\nb'", "a\n\nb"),
        ("printf 'a\\n'", "a\n"),
        ("printf ''", ""),
        ("echo; echo x", "\nx\n"),
    ] {
        let host = ShellHost::new("a");
        let slot = Slot::<String>::new("out");
        let filled = slot.clone();
        let check = Arc::new(std::sync::Mutex::new(String::new()));
        let seen = check.clone();
        let action =
            kk_engine::actions::Command::new("print", text).output(Arc::new(move |stdout, slots| {
                slots.fill(&filled, stdout.to_owned());
                stdout.clone_into(&mut seen.lock().unwrap());
                Ok(())
            }));
        let ran = run(
            vec![Task::new("t", "").on("a", HostWork::new(vec![Box::new(action)]))],
            &[&host],
            Options::default(),
        )
        .await;
        assert!(ran.report.ok);
        assert_eq!(*check.lock().unwrap(), wanted);
    }
}

#[tokio::test]
async fn a_task_leaves_values_for_the_end_of_the_command() {
    let host = ShellHost::new("a");
    let print = kk_engine::actions::Command::new("look", "echo 364").output(Arc::new(|stdout, slots| {
        slots.output("certificate_days", stdout.trim());
        Ok(())
    }));
    let tasks = vec![Task::new("t", "").on("a", HostWork::new(vec![Box::new(print)]))];
    let ran = run(tasks, &[&host], Options::default()).await;
    assert_eq!(ran.report.outputs["certificate_days"], "364");
}

#[tokio::test]
async fn output_that_is_not_understood_fails_its_task() {
    let host = ShellHost::new("a");
    let action = kk_engine::actions::Command::new("print", "echo nonsense")
        .output(Arc::new(|stdout, _| Err(Failure::new(format!("not a ticket: {}", stdout.trim())))));
    let tasks = vec![
        Task::new("ticket", "").on("a", HostWork::new(vec![Box::new(action)]).provides(slot("x"))),
        Task::new("next", "").on("a", script("sleep 0.3").needs(slot("x"))),
        Task::new("last", "").on("a", log("last")),
    ];
    let ran = run(tasks, &[&host], Options::default()).await;
    assert_eq!(ran.failure().cause, "not a ticket: nonsense");
    assert!(host.log().is_empty());
}

#[tokio::test]
async fn a_fake_host_answers_batches_operation_by_operation() {
    use kk_connector::{Connection, FakeHost, Output};
    let host = FakeHost::new("a").on_fn(testing::is_batch, |command| {
        Ok(testing::answer(command, |script| match script {
            script if script.contains("init") => {
                Output { code: 1, stderr: "port in use\n".into(), ..Output::default() }
            }
            _ => Output { stdout: "said".into(), ..Output::default() },
        }))
    });
    let said = Slot::<String>::new("said");
    let slot = said.clone();
    let tell = kk_engine::actions::Command::new("tell", "tell").output(Arc::new(move |stdout, slots| {
        assert_eq!(stdout, "said");
        slots.fill(&slot, stdout.to_owned());
        Ok(())
    }));
    let tasks = vec![
        Task::new("tell", "").on("a", HostWork::new(vec![Box::new(tell)]).provides(said.key())),
        Task::new("init", "").on("a", script("kubeadm init")),
        Task::new("after", "").on("a", script("after")),
    ];
    let pipeline = Pipeline { modules: vec![Module::new("m", tasks)] };
    let plan = Plan::new(pipeline, &BTreeMap::new()).unwrap();
    let connections = BTreeMap::from([("a".to_owned(), Arc::new(host) as Arc<dyn Connection>)]);
    let (events, _receiver) = kk_engine::events(Redactor::default());
    let report = kk_engine::run(plan, connections, Options::default(), events).await;
    assert_eq!(report.failures[0].failure.cause, "port in use");
    assert_eq!((report.failures[0].task.as_str(), report.changed), ("init", 1));
}
