//! Tasks that run on one host after the other.

use kk_engine::{EventKind, HostWork, Options, Slot, Task, Turn};

use crate::runner::support::{ShellHost, command, run, script};

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

/// A task that one host executes and that concerns another host.
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
