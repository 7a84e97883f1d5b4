//! This machine as a host.

#![expect(clippy::unwrap_used, reason = "a test ends at the first thing that is wrong")]

use std::time::{Duration, Instant};

use kk_connector::{Command, Connection, Error, LocalConnection, Payload, Upload, UploadFile};
use tokio_util::sync::CancellationToken;

/// The tests of this file need root, or sudo without a password.
fn this_machine() -> Option<LocalConnection> {
    let may =
        std::process::Command::new("sh").args(["-c", "[ $(id -u) = 0 ] || sudo -n true"]).output().unwrap();
    if !may.status.success() {
        println!("skipped: it needs root, or sudo without a password");
        return None;
    }
    Some(LocalConnection::new("here", None))
}

#[tokio::test]
async fn scripts_run_with_their_files() {
    let Some(host) = this_machine() else { return };
    let command = Command {
        files: vec![Payload { name: "x".into(), content: b"content\n".as_slice().into() }],
        ..Command::new("id -u; cat x; echo err >&2; exit 4")
    };
    let out = host.run(command).await.unwrap();
    assert_eq!((out.code, out.stdout.as_str(), out.stderr.as_str()), (4, "0\ncontent\n", "err\n"));
    assert_eq!(host.stats().round_trips, 1);
}

#[tokio::test]
async fn a_timeout_ends_the_process() {
    let Some(host) = this_machine() else { return };
    let pid = tempfile::NamedTempFile::new().unwrap();
    let command = Command {
        timeout: Duration::from_millis(300),
        ..Command::new(format!("echo $$ >{}; sleep 60", pid.path().display()))
    };
    let begin = Instant::now();
    assert!(matches!(host.run(command).await, Err(Error::Timeout { .. })));
    assert!(begin.elapsed() < Duration::from_secs(4));
    let pid = std::fs::read_to_string(pid).unwrap();
    assert!(!std::path::Path::new("/proc").join(pid.trim()).exists());
}

#[tokio::test]
async fn files_arrive_and_are_read_back() {
    let Some(host) = this_machine() else { return };
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("source"), "abc").unwrap();
    let target = dir.path().join("a/target").display().to_string();
    let upload = Upload {
        files: vec![UploadFile {
            source: dir.path().join("source"),
            target: target.clone(),
            mode: 0o600,
            sha256: "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad".into(),
        }],
        timeout: Duration::from_secs(10),
        cancel: CancellationToken::new(),
        progress: None,
    };
    assert_eq!(host.upload(upload).await.unwrap().bytes, 3);
    assert_eq!(host.download(&target, 3).await.unwrap(), b"abc");
}
