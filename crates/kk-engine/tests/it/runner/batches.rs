//! Scripts of a lane that are sent together: their order, their shell and files, their output.

use std::{collections::BTreeMap, sync::Arc};

use kk_engine::{
    Action, EventKind, HostWork, Module, Options, Outcome, Pipeline, Plan, Redactor, Slot, Task, actions,
    testing,
};

use crate::runner::support::{ShellHost, command, log, run, run_with, script};

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
async fn what_only_waits_is_no_change() {
    let host = ShellHost::new("a");
    let wait = actions::WaitUntil::new("it is there", "true");
    let command = actions::Command::new("wait for it", "true").only_waits();
    let actions: Vec<Box<dyn Action>> = vec![Box::new(wait), Box::new(command)];
    let tasks =
        vec![Task::new("wait", "").on("a", HostWork::new(actions)), Task::new("one", "").on("a", log("one"))];
    let ran = run(tasks, &[&host], Options::default()).await;
    assert!(ran.report.ok);
    assert_eq!(ran.report.changed, 1);
}

#[tokio::test]
async fn a_task_is_told_when_it_begins_and_ends_and_not_at_the_end_of_the_round_trip() {
    let host = ShellHost::new("a");
    let tasks = vec![
        Task::new("slow", "").on("a", script("sleep 1.5")),
        Task::new("next", "").on("a", script("sleep 1.5")),
    ];
    let ran = run(tasks, &[&host], Options::default()).await;
    let at =
        |wanted: fn(&EventKind) -> bool| ran.events.iter().find(|event| wanted(&event.kind)).unwrap().at_ms;
    let slow = at(|kind| matches!(kind, EventKind::TaskStarted { task, .. } if task == "slow"));
    let next = at(|kind| matches!(kind, EventKind::TaskStarted { task, .. } if task == "next"));
    let end = at(|kind| matches!(kind, EventKind::TaskFinished { task, .. } if task == "next"));
    // If both were reported at the end, one of the two would take no time. A busy machine only makes them longer.
    assert!(next - slow > 300 && end - next > 300, "{slow} {next} {end}");
    assert_eq!(host.trips(), 1);
}

#[tokio::test]
async fn each_operation_has_its_own_shell_directory_and_files() {
    let host = ShellHost::new("a");
    let file = |content: &str| {
        let put =
            actions::Command::new("put", "cat 'it is' >>$KK_ROOT/log; X=set; cd /; [ -z \"${Y-}\" ]; Y=set");
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
        let action = actions::Command::new("print", text).output(Arc::new(move |stdout, slots| {
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
    let print = actions::Command::new("look", "echo 364").output(Arc::new(|stdout, slots| {
        slots.output("certificate_days", stdout.trim());
        Ok(())
    }));
    let tasks = vec![Task::new("t", "").on("a", HostWork::new(vec![Box::new(print)]))];
    let ran = run(tasks, &[&host], Options::default()).await;
    assert_eq!(ran.report.outputs["certificate_days"], "364");
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
    let tell = actions::Command::new("tell", "tell").output(Arc::new(move |stdout, slots| {
        assert_eq!(stdout, "said");
        slots.fill(&slot, stdout.to_owned());
        Ok(())
    }));
    let tasks = vec![
        Task::new("tell", "").on("a", HostWork::new(vec![Box::new(tell)]).provides(said.key())),
        Task::new("init", "").on("a", script("kubeadm init")),
        Task::new("after", "").on("a", script("after")),
    ];
    let pipeline = Pipeline::new(vec![Module::new("m", tasks)]);
    let plan = Plan::new(pipeline, &BTreeMap::new()).unwrap();
    let connections = BTreeMap::from([("a".to_owned(), Arc::new(host) as Arc<dyn Connection>)]);
    let (events, _receiver) = kk_engine::events(Redactor::default());
    let report = kk_engine::run(plan, connections, Options::default(), events).await;
    assert_eq!(report.failures[0].failure.cause, "port in use");
    assert_eq!((report.failures[0].task.as_str(), report.changed), ("init", 1));
}
