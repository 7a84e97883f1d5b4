//! Concurrent lanes: slots, background tasks, barriers and permits.

use std::sync::Arc;

use kk_engine::{Action, Apply, Change, Facts, Failure, HostWork, Options, Script, Slot, Task, actions};

use crate::runner::support::{ShellHost, command, log, run, script, slot};

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
    let make = actions::Command::new("make ticket", "sleep 0.3; echo 'the ticket'; echo noise >&2").output(
        Arc::new(move |stdout, slots| {
            slots.fill(&ticket, stdout.to_owned());
            Ok(())
        }),
    );
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
        Task::new("images", "").background().on(
            "a",
            script("until grep -q etcd $KK_ROOT/log; do sleep 0.05; done; echo images >>$KK_ROOT/log")
                .provides(slot("images")),
        ),
        Task::new("etcd", "").on("a", log("etcd")),
        Task::new("join", "").on("a", log("join").needs(slot("images"))),
    ];
    let ran = run(tasks, &[&host], Options::default()).await;
    assert!(ran.report.ok);
    assert_eq!(host.log(), ["etcd", "images", "join"]);
    assert_eq!(host.trips(), 3);
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
    let wait = actions::WaitUntil::new("b has worked", format!("[ -e {flag} ]"));
    let begins = HostWork::new(vec![command("echo begun >>$KK_ROOT/log"), Box::new(wait)]);
    let tasks = vec![
        Task::new("wait", "").on("a", begins),
        Task::new("work", "").on("b", script(&format!("sleep 0.3; : >{flag}"))),
    ];
    let ran = run(tasks, &[&a, &b], Options { forks: 1, ..Options::default() }).await;
    assert!(ran.report.ok, "{:?}", ran.report.failures);
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
