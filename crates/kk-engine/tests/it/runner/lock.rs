//! One owner at a time works on a host, by the lock that the host stores. Run with a real `sh` and `flock`.

use std::{
    fs,
    path::Path,
    sync::Arc,
    time::{Duration, SystemTime},
};

use kk_connector::{Connection, UploadFile};
use kk_engine::{HOST_LOCK, HostWork, Options, Outcome, Owner, Script, Task, actions};

use crate::runner::support::{Ran, ShellHost, is_there, run, script};

fn as_owner(id: &str) -> Options {
    Options { owner: Some(Owner::new(id, format!("root@{id}"))), ..Options::default() }
}

async fn run_as(id: &str, host: &Arc<ShellHost>, text: &str) -> Ran {
    run(vec![Task::new("t", "").on("a", script(text))], &[host], as_owner(id)).await
}

#[tokio::test]
async fn another_owner_waits_until_the_run_has_ended() {
    let host = ShellHost::new("a");
    let (one, go) = (host.clone(), host.path("go"));
    let long = "touch \"$KK_ROOT/begun\"; while [ ! -e \"$KK_ROOT/go\" ]; do sleep 0.05; done";
    let first = tokio::spawn(async move { run_as("one", &one, long).await });
    is_there(host.path("begun")).await;
    // Another owner is refused while the run is active.
    let second = run_as("two", &host, "true").await;
    let failure = second.failure();
    assert!(failure.cause.contains("another kk works on this host: root@one, active now"), "{failure:?}");
    assert!(failure.hint.is_some());
    fs::write(go, "").unwrap();
    assert!(first.await.unwrap().report.ok);
    assert_eq!(fs::read_to_string(host.path("run/kubekey.lock")).unwrap(), "", "given free at the end");
    assert!(run_as("two", &host, "true").await.report.ok);
}

#[tokio::test]
async fn after_a_failure_the_owner_goes_on_at_once_and_others_when_it_was_idle() {
    let host = ShellHost::new("a");
    assert!(!run_as("one", &host, "exit 3").await.report.ok);
    let other = run_as("two", &host, "true").await;
    assert!(other.failure().cause.contains("root@one, active"), "{:?}", other.failure());
    assert!(!run_as("one", &host, "exit 3").await.report.ok);
    let aged = |time: SystemTime| {
        let lock = fs::File::options().write(true).open(host.path("run/kubekey.lock")).unwrap();
        lock.set_modified(time).unwrap();
    };
    aged(SystemTime::now() - Owner::IDLE);
    assert!(!run_as("two", &host, "exit 3").await.report.ok, "it has the host now, and fails by itself");
    assert!(run_as("one", &host, "true").await.failure().cause.contains("root@two, active"));
    // The clock was ahead at the owner's last action.
    aged(SystemTime::now() + Owner::IDLE * 2);
    assert!(run_as("one", &host, "true").await.report.ok);
}

#[tokio::test]
async fn a_run_of_several_plans_keeps_its_hosts_in_between() {
    let host = ShellHost::new("a");
    let options = Options { more: true, ..as_owner("one") };
    let source = tempfile::NamedTempFile::new().unwrap();
    let (owner, connection) = (options.owner.clone().unwrap(), host.clone() as Arc<dyn Connection>);
    for task in [Task::new("t", "").on("a", script("true")), taken_by(source.path(), "true")] {
        assert!(run(vec![task], &[&host], options.clone()).await.report.ok);
        assert!(run_as("two", &host, "true").await.failure().cause.contains("root@one, active"));
    }
    kk_engine::release(&Owner::new("one", "another run"), [connection.clone()]).await;
    assert!(!run_as("two", &host, "true").await.report.ok, "only the run itself gives it free");
    kk_engine::release(&owner, [connection]).await;
    assert!(run_as("two", &host, "true").await.report.ok);
}

#[tokio::test]
async fn a_run_that_has_lost_a_host_to_another_owner_does_not_go_on_there() {
    let host = ShellHost::new("a");
    let options = Options { more: true, ..as_owner("one") };
    let task = || vec![Task::new("t", "").on("a", script("true"))];
    assert!(run(task(), &[&host], options.clone()).await.report.ok);
    let lock = fs::File::options().write(true).open(host.path("run/kubekey.lock")).unwrap();
    lock.set_modified(SystemTime::now() - Owner::IDLE).unwrap();
    assert!(run(task(), &[&host], options.clone()).await.report.ok, "nobody has come in between");
    lock.set_modified(SystemTime::now() - Owner::IDLE).unwrap();
    assert!(run_as("two", &host, "true").await.report.ok, "it comes and gives the host free");
    let source = tempfile::NamedTempFile::new().unwrap();
    for task in [task().remove(0), taken_by(source.path(), "true")] {
        let ran = run(vec![task], &[&host], options.clone()).await;
        let failure = ran.failure();
        assert!(failure.cause.contains("since the last action of this run: root@two"), "{failure:?}");
        assert!(failure.hint.as_ref().is_some_and(|hint| hint.contains("run the same command again")));
        assert!(!ran.report.begun);
    }
    assert!(run_as("one", &host, "true").await.report.ok, "a new run looks at the host anew");
}

/// They are named like directories of the bootstrap, and a FIFO blocks a process that reads it.
#[tokio::test]
async fn directories_of_other_users_in_tmp_are_not_read() {
    let host = ShellHost::new("a");
    assert!(!run_as("one", &host, "exit 3").await.report.ok);
    let text = format!(
        "exec 8<>'{0}'; flock -s 8; echo \"pid $$\" >>'{0}'; exec sleep 60",
        host.path("run/kubekey.lock").display()
    );
    let mut holder = std::process::Command::new("sh").args(["-c", &text]).spawn().unwrap();
    let id = holder.id();
    let locked = format!("pid {id}\n");
    while !fs::read_to_string(host.path("run/kubekey.lock")).unwrap().contains(&locked) {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let mut innocent = std::process::Command::new("sleep").arg("60").spawn().unwrap();
    let text = format!(
        "mkdir -p tmp/kk.fifo tmp/elsewhere; mkfifo tmp/kk.fifo/pid; echo {0} >tmp/elsewhere/pid; echo 'pid {0}' >>run/kubekey.lock
         ln -s elsewhere tmp/kk.link
         mkdir tmp/kk.other && echo {0} >tmp/kk.other/pid && {{ chown 65534 tmp/kk.other 2>/dev/null || rm -r tmp/kk.other; }}
         mkdir -p run/kk.1 && echo {id} >run/kk.1/pid",
        innocent.id()
    );
    let status =
        std::process::Command::new("sh").args(["-c", &text]).current_dir(host.root.path()).status().unwrap();
    assert!(status.success());
    let ran = tokio::time::timeout(Duration::from_mins(1), run_as("one", &host, "true")).await;
    let alive = innocent.try_wait().unwrap().is_none();
    innocent.kill().unwrap();
    innocent.wait().unwrap();
    assert!(ran.expect("it does not wait for a FIFO").report.ok && alive);
    assert!(!holder.wait().unwrap().success(), "the real one is ended");
}

/// The duration of the batch does not matter.
#[tokio::test]
async fn an_owner_is_idle_from_the_end_of_its_last_batch_on() {
    let host = ShellHost::new("a");
    let source = tempfile::NamedTempFile::new().unwrap();
    let lock = host.path("run/kubekey.lock");
    let options = Options { more: true, ..as_owner("one") };
    for end in ["true", "exit 3", "kill -s TERM $PPID"] {
        let text = format!("touch -d @1 \"$KK_ROOT/run/kubekey.lock\"; {end}");
        for task in [Task::new("t", "").on("a", script(&text)), taken_by(source.path(), &text)] {
            let ran = run(vec![task], &[&host], options.clone()).await;
            assert_eq!(ran.report.ok, end == "true", "{:?}", ran.report.failures);
            let age = SystemTime::now().duration_since(fs::metadata(&lock).unwrap().modified().unwrap());
            assert!(age.unwrap_or_default() < Duration::from_hours(1), "{end}");
        }
    }
}

#[tokio::test]
async fn batches_of_one_run_hold_the_lock_together() {
    let host = ShellHost::new("a");
    let meet = |own: &str, other: &str| {
        format!(
            "touch \"$KK_ROOT/{own}\"; n=0; while [ ! -e \"$KK_ROOT/{other}\" ]; do n=$((n + 1)); [ $n -lt 300 ]; sleep 0.05; done"
        )
    };
    let tasks = vec![
        Task::new("lane", "").on("a", script(&meet("x", "y"))),
        Task::new("background", "").background().on("a", script(&meet("y", "x"))),
    ];
    let ran = run(tasks, &[&host], as_owner("one")).await;
    assert!(ran.report.ok, "{:?}", ran.report.failures);
}

#[tokio::test]
async fn what_is_left_of_an_earlier_run_is_ended() {
    let host = ShellHost::new("a");
    assert!(!run_as("one", &host, "exit 3").await.report.ok);
    // A batch whose connection is lost: its bootstrap holds the lock, and its process id is in the lock's record.
    let text = format!(
        "exec 8<>'{0}'; flock -s 8; echo \"pid $$\" >>'{0}'; exec sleep 60",
        host.path("run/kubekey.lock").display()
    );
    let mut orphan = std::process::Command::new("sh").args(["-c", &text]).spawn().unwrap();
    fs::create_dir_all(host.path("run/kk.1")).unwrap();
    fs::write(host.path("run/kk.1/pid"), format!("{}\n", orphan.id())).unwrap();
    while !fs::read_to_string(host.path("run/kubekey.lock"))
        .unwrap()
        .contains(&format!("pid {}\n", orphan.id()))
    {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert!(run_as("one", &host, "true").await.report.ok);
    assert!(!orphan.wait().unwrap().success());
}

/// A file for the host; the script there moves it to its place.
fn taken_by(source: &Path, text: &str) -> Task {
    let (source, target) = (source.to_owned(), "/opt/file".to_owned());
    let sha256 = kk_util::sha256(fs::read(&source).unwrap());
    let file = UploadFile { source, target, mode: 0o600, sha256 };
    let upload = actions::Upload::new(vec![file]).taken_by(Script::new(text));
    Task::new("t", "").on("a", HostWork::new(vec![Box::new(upload)]))
}

#[tokio::test]
async fn what_an_upload_runs_on_the_host_holds_the_lock() {
    let host = ShellHost::new("a");
    let source = tempfile::NamedTempFile::new().unwrap();
    let long = "touch \"$KK_ROOT/begun\"; while [ ! -e \"$KK_ROOT/go\" ]; do sleep 0.05; done";
    let task = taken_by(source.path(), long);
    let uploading = host.clone();
    let first = tokio::spawn(async move { run(vec![task], &[&uploading], as_owner("one")).await });
    is_there(host.path("begun")).await;
    assert!(run_as("two", &host, "true").await.failure().cause.contains("root@one, active now"));
    fs::write(host.path("go"), "").unwrap();
    let ran = first.await.unwrap();
    assert!(ran.report.ok, "{:?}", ran.report.failures);
    assert_eq!(fs::read_to_string(host.path("run/kubekey.lock")).unwrap(), "", "given free at the end");

    assert!(!run_as("two", &host, "exit 3").await.report.ok);
    let refused = run(vec![taken_by(source.path(), "true")], &[&host], as_owner("one")).await;
    let failure = refused.failure();
    assert!(failure.cause.contains("another kk works on this host: root@two, active"), "{failure:?}");
    assert!(failure.hint.as_ref().is_some_and(|hint| hint.starts_with("wait until")), "{failure:?}");
}

#[tokio::test]
async fn nothing_has_begun_on_a_host_that_another_owner_has() {
    let host = ShellHost::new("a");
    let source = tempfile::NamedTempFile::new().unwrap();
    assert!(run_as("two", &host, "exit 3").await.report.begun);
    for task in [Task::new("t", "").on("a", script("true")), taken_by(source.path(), "true")] {
        let ran = run(vec![task], &[&host], as_owner("one")).await;
        assert!(ran.failure().cause.contains("another kk works on this host"), "{:?}", ran.failure());
        assert!(!ran.report.begun && ran.report.changed == 0);
        assert_eq!(ran.ended(|outcome| matches!(outcome, Outcome::Failed { .. })), ["t@a"]);
    }
    let upload = run(vec![taken_by(source.path(), "exit 3")], &[&host], as_owner("two")).await;
    assert!(!upload.report.ok && upload.report.begun, "it holds the lock, and fails by itself");
}

/// All files of a host, and their content.
fn files(host: &ShellHost) -> String {
    let list = "find . | sort; find . -type f -exec sha256sum {} + | sort";
    let root = host.root.path();
    let output = std::process::Command::new("sh").args(["-c", list]).current_dir(root).output().unwrap();
    String::from_utf8(output.stdout).unwrap()
}

#[tokio::test]
async fn an_upload_that_is_refused_leaves_nothing_behind_and_another_gives_the_host_free() {
    let host = ShellHost::new("a");
    let source = tempfile::NamedTempFile::new().unwrap();
    fs::write(source.path(), "content").unwrap();
    assert!(!run_as("two", &host, "exit 3").await.report.ok);
    let before = files(&host);
    let upload = || taken_by(source.path(), "true");
    assert!(!run(vec![upload()], &[&host], as_owner("one")).await.report.ok);
    assert_eq!(files(&host), before);
    let ran = run(vec![upload()], &[&host], as_owner("two")).await;
    assert!(ran.report.ok, "{:?}", ran.report.failures);
    assert_eq!(fs::read_to_string(host.path("opt/file")).unwrap(), "content");
    assert_eq!(fs::read_to_string(host.path("run/kubekey.lock")).unwrap(), "");
}

/// Two batches of a run arrive at once at a host that an earlier run has left. One takes the lock after the other has read the
/// previous owner and before it has tried to take the lock.
#[test]
fn a_batch_of_the_same_run_is_no_left_over() {
    let host = ShellHost::new("a");
    fs::create_dir_all(host.path("run/kk.1/files")).unwrap();
    fs::write(host.path("run/kubekey.lock"), "one\nearlier\nroot@one\n").unwrap();
    let lock = format!("KK_OWNER=one KK_RUN=now KK_NAME=root@one KK_IDLE=120\n{HOST_LOCK}");
    let first = "echo $$ >\"$KK_ROOT/run/kk.1/pid\"\ncd \"$KK_ROOT/run/kk.1/files\"\nkk_lock\n\
                 touch \"$KK_ROOT/locked\"\nexec sleep 60\n";
    fs::write(host.path("first"), format!("{lock}{first}")).unwrap();
    let second = "flock() {\n\
                  if [ \"$1 $2\" = '-n -x' ] && mkdir \"$KK_ROOT/raced\" 2>/dev/null; then\n\
                  sh \"$KK_ROOT/first\" 8<&- >/dev/null 2>&1 &\n\
                  until [ -e \"$KK_ROOT/locked\" ]; do sleep 0.05; done\nfi\ncommand flock \"$@\"\n}\nkk_lock\n";
    let root = host.root.path();
    let script = format!("{lock}{second}");
    let status =
        std::process::Command::new("sh").args(["-c", &script]).env("KK_ROOT", root).status().unwrap();
    let pid = fs::read_to_string(host.path("run/kk.1/pid")).unwrap();
    let state = fs::read_to_string(format!("/proc/{}/stat", pid.trim()));
    let ended = std::process::Command::new("kill").args(["-KILL", pid.trim()]).status().unwrap();
    assert!(status.success() && ended.success());
    assert!(state.is_ok_and(|state| !state.contains(") Z ")), "the first batch was ended");
}
