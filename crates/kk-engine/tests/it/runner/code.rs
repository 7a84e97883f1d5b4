//! Code of the control machine in a run.

use std::{sync::Arc, time::Duration};

use kk_connector::UploadFile;
use kk_engine::{
    Action, Apply, Change, Context, EventKind, Facts, Failure, HostWork, Options, Run, Task, actions,
};

use crate::runner::support::{ShellHost, log, run, slot};

struct Code(fn() -> Result<(), Failure>);

#[async_trait::async_trait]
impl Run for Code {
    async fn run(&self, context: Context) -> Result<(), Failure> {
        (context.progress)(1, 2);
        tokio::time::sleep(Duration::from_millis(50)).await;
        self.0()
    }
}

/// An action that is carried out by the given code.
struct ByCode(Arc<dyn Run>);

impl Action for ByCode {
    fn check(&self, _facts: &Facts) -> Change {
        Change::needed("compute")
    }
    fn apply(&self, _facts: &Facts) -> Apply {
        Apply::Run(self.0.clone())
    }
}

fn by_code(code: impl Run + 'static) -> HostWork {
    HostWork::new(vec![Box::new(ByCode(Arc::new(code)))])
}

#[tokio::test]
async fn code_runs_on_the_control_machine_without_a_connection() {
    let host = ShellHost::new("a");
    let code = by_code(Code(|| Ok(()))).provides(slot("certs"));
    let tasks = vec![
        Task::new("certs", "").on(kk_engine::CONTROL, code),
        Task::new("use", "").on("a", log("use").needs(slot("certs"))),
    ];
    let ran = run(tasks, &[&host], Options::default()).await;
    assert!(ran.report.ok);
    assert!(
        ran.events.iter().any(|event| matches!(event.kind, EventKind::Progress { done: 1, total: 2, .. }))
    );
}

#[tokio::test]
async fn a_panic_of_an_action_is_a_failure_and_nobody_waits_for_ever() {
    let host = ShellHost::new("a");
    let code = by_code(Code(|| panic!("index out of bounds")));
    let tasks = vec![
        Task::new("bug", "").on(kk_engine::CONTROL, code.provides(slot("certs"))),
        Task::new("use", "").on("a", log("use").needs(slot("certs"))),
    ];
    let ran = run(tasks, &[&host], Options { ignore_err: true, ..Options::default() }).await;
    assert!(ran.failure().cause.contains("index out of bounds"));
    assert_eq!(ran.skipped(), ["use@a"]);
}

struct Talks;
#[async_trait::async_trait]
impl Run for Talks {
    async fn run(&self, context: Context) -> Result<(), Failure> {
        for piece in 0..=20_000 {
            (context.progress)(piece, 20_000);
        }
        Ok(())
    }
}

#[tokio::test]
async fn the_bytes_of_a_transfer_do_not_fill_the_journal() {
    let host = ShellHost::new("a");
    let work = by_code(Talks);
    let ran = run(vec![Task::new("talk", "").on("a", work)], &[&host], Options::default()).await;
    let done = ran.events.iter().filter_map(|event| match event.kind {
        EventKind::Progress { done, .. } => Some(done),
        _ => None,
    });
    let done: Vec<u64> = done.collect();
    assert!(done.len() < 20 && done.first() == Some(&0) && done.last() == Some(&20_000), "{done:?}");
}

/// A transfer that has sent all its bytes, or all but one, and does not end before another transfer has got as far.
struct Sends {
    sent: u64,
    all: Arc<tokio::sync::Barrier>,
}

#[async_trait::async_trait]
impl Run for Sends {
    async fn run(&self, context: Context) -> Result<(), Failure> {
        (context.progress)(self.sent, 10);
        self.all.wait().await;
        Ok(())
    }

    fn transfers(&self) -> bool {
        true
    }
}

/// Runs two such transfers, with one permit for uploads, and returns whether both finished.
async fn both_send(sent: u64) -> bool {
    let all = Arc::new(tokio::sync::Barrier::new(2));
    let hosts = [ShellHost::new("a"), ShellHost::new("b")];
    let mut task = Task::new("send", "").timeout(Duration::from_secs(if sent == 10 { 60 } else { 1 }));
    for name in ["a", "b"] {
        task = task.on(name, by_code(Sends { sent, all: Arc::clone(&all) }));
    }
    let options = Options { upload_forks: 1, ignore_err: true, ..Options::default() };
    run(vec![task], &[&hosts[0], &hosts[1]], options).await.report.ok
}

#[tokio::test]
async fn the_next_transfer_begins_when_all_bytes_of_the_one_before_are_sent() {
    assert!(both_send(10).await);
    assert!(!both_send(9).await, "one transfer at a time");
}

struct Hangs;
#[async_trait::async_trait]
impl Run for Hangs {
    async fn run(&self, context: Context) -> Result<(), Failure> {
        context.cancel.cancelled().await;
        Err(Failure::new("told to end"))
    }
}

#[tokio::test]
async fn code_that_does_not_end_is_ended_by_its_timeout() {
    let host = ShellHost::new("a");
    let work = by_code(Hangs);
    let ran = run(
        vec![Task::new("hang", "").timeout(Duration::from_millis(200)).on("a", work)],
        &[&host],
        Options::default(),
    )
    .await;
    assert_eq!(ran.failure().cause, "no end after 0.2 s on a");
}

#[tokio::test]
async fn an_upload_is_written_down_before_it_and_remembered_after_it_in_one_round_trip() {
    let host = ShellHost::new("a");
    let source = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(source.path(), "program").unwrap();
    std::fs::create_dir_all(host.path("usr/bin")).unwrap();
    std::fs::write(host.path("usr/bin/there"), "of somebody else").unwrap();
    let sum = kk_util::sha256("program");
    let file = |target: &str| UploadFile {
        source: source.path().into(),
        target: target.into(),
        mode: 0o755,
        sha256: sum.clone(),
    };
    let upload = actions::Upload::new(vec![file("/usr/local/bin/it"), file("/usr/bin/there")]);
    let lines = Change::Needed(vec!["upload /usr/local/bin/it".into(), "upload /usr/bin/there".into()]);
    assert_eq!(upload.check(&Facts::default()), lines);
    let work = HostWork::new(vec![Box::new(upload)]);
    let ran = run(vec![Task::new("programs", "").on("a", work)], &[&host], Options::default()).await;
    assert!(ran.report.ok, "{:?}", ran.report.failures);
    assert_eq!(std::fs::read_to_string(host.path("usr/local/bin/it")).unwrap(), "program");
    let owned = std::fs::read_to_string(host.path("etc/kubekey/owned")).unwrap();
    assert_eq!(
        owned,
        "dir\t/usr/local\ndir\t/usr/local/bin\nmade\t/usr/local/bin/it\nsaved\t/usr/bin/there\n"
    );
    assert_eq!(
        std::fs::read_to_string(host.path("etc/kubekey/saved/usr/bin/there")).unwrap(),
        "of somebody else"
    );
    let sums = std::fs::read_to_string(host.path("etc/kubekey/sums")).unwrap();
    assert!(sums.lines().count() == 2 && sums.starts_with(&sum), "{sums}");
    assert_eq!(host.trips(), 1);
    assert!(
        ran.events.iter().any(|event| matches!(event.kind, EventKind::Progress { done: 14, total: 14, .. }))
    );
}
