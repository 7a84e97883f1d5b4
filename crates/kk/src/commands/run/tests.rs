//! The effect of a plan's result on the command, and the rollback of plans.

use clap::Parser as _;
use kk_connector::FakeHost;
use kk_engine::{HostWork, Module, Pipeline, Redactor, Task, actions, testing};

use super::*;

#[test]
fn what_was_ended_in_the_middle_may_have_changed_something() {
    let stopped = Report { stopped: true, ..Report::default() };
    for begun in [false, true] {
        let error = verdict(stopped.clone(), begun).unwrap_err();
        assert!(matches!(error, Error::Cancelled { changed, .. } if changed == begun), "{error:?}");
    }
    assert!(verdict(Report { ok: true, ..stopped }, true).is_ok());
}

/// The options of every run.
#[derive(clap::Parser)]
struct Line {
    #[command(flatten)]
    run: RunOptions,
}

#[tokio::test]
async fn what_was_begun_is_taken_back_also_after_the_first_ctrl_c_and_not_after_the_second() {
    let host = Arc::new(FakeHost::new("n1").on_fn(testing::is_batch, |command| {
        Ok(testing::answer(command, |_| kk_connector::Output::default()))
    }));
    let (printer, line) = (Printer::plain(), Line::parse_from(["kk"]));
    let (events, receiver) = events(Redactor::default());
    let mut run = Run {
        printer: &printer,
        options: &line.run,
        cancel: Cancel::default(),
        events,
        listening: tokio::spawn(listen(receiver, Vec::new())),
        connections: Connections::from([("n1".to_owned(), host.clone() as Arc<dyn Connection>)]),
        owner: Owner::new("one", "root@one"),
        rounds: true,
        held: BTreeSet::new(),
        changed: 0,
        begun: false,
        outputs: BTreeMap::new(),
        directory: None,
        trace: None,
        _lock: None,
    };
    let plan = || {
        let remove = HostWork::new(vec![Box::new(actions::Command::new("remove it", "rm it\n"))]);
        let module = Module::new("m", vec![Task::new("t", "Remove it").on("n1", remove)]);
        Plan::new(Pipeline::new(vec![module]), &BTreeMap::new()).unwrap()
    };
    run.cancel.tidy.cancel();
    assert!(run.execute(plan()).await.is_err() && host.commands().is_empty());
    run.take_back(plan()).await.unwrap();
    assert_eq!(host.commands().iter().flat_map(testing::scripts).collect::<Vec<_>>(), ["rm it\n"]);
    run.cancel.at_once.cancel();
    assert!(run.take_back(plan()).await.is_err());
    assert_eq!(host.commands().len(), 1);
}

#[test]
fn a_failure_is_told_also_when_the_run_was_stopped_after_it() {
    let failure = TaskFailure {
        host: "node1".into(),
        module: "etcd".into(),
        task: "start_etcd".into(),
        title: "Start etcd".into(),
        failure: Failure::new("no space"),
    };
    let report = Report { stopped: true, failures: vec![failure], ..Report::default() };
    let error = verdict(report, true).unwrap_err();
    assert_eq!(error.status(), ExitStatus::Cancelled);
    let said: Vec<String> = error.problems().into_iter().map(|problem| problem.message).collect();
    assert_eq!(said, ["no space", "cancelled"]);
}
