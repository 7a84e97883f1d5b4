//! The control machine as a host.

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test says what it skips, and ends at what is wrong"
)]

use std::{
    path::Path,
    time::{Duration, Instant},
};

use kk_connector::{Command, Connection, Error, LocalConnection, Payload, Upload, UploadFile, UploadHooks};
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
    assert!(!Path::new("/proc").join(pid.trim()).exists());
}

fn upload(source: &Path, target: &str, sha256: &str) -> Upload {
    let (source, target, sha256) = (source.into(), target.into(), sha256.into());
    Upload {
        files: vec![UploadFile { source, target, mode: 0o600, sha256 }],
        hooks: UploadHooks::default(),
        timeout: Duration::from_secs(10),
        cancel: CancellationToken::new(),
        progress: None,
    }
}

#[tokio::test]
async fn files_arrive_and_are_read_back() {
    let Some(host) = this_machine() else { return };
    let dir = tempfile::tempdir().unwrap();
    let source = dir.path().join("source");
    std::fs::write(&source, "abc").unwrap();
    let target = dir.path().join("a/target").display().to_string();
    let sum = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
    assert_eq!(host.upload(upload(&source, &target, sum)).await.unwrap().bytes, 3);
    assert_eq!(host.download(&target, 3).await.unwrap(), b"abc");
}

#[tokio::test]
async fn a_script_that_gives_up_in_the_middle_of_an_upload_says_why() {
    let Some(host) = this_machine() else { return };
    let source = tempfile::NamedTempFile::new().unwrap();
    source.as_file().set_len(64 << 20).unwrap();
    let error = host.upload(upload(source.path(), "/proc/kk/x", &"0".repeat(64))).await.unwrap_err();
    assert!(error.to_string().contains("cannot be made"), "{error}");
}

/// A file of the kernel stands in for a file on a damaged disk: it exists, it can be opened, and reading it is an error.
#[tokio::test]
async fn a_file_that_cannot_be_read_to_its_end_is_no_short_file() {
    let Some(host) = this_machine() else { return };
    let error = host.download("/proc/self/clear_refs", 10).await.unwrap_err();
    assert!(matches!(&error, Error::Read { reason, .. } if reason.contains("error")), "{error}");
    // If only a part of a file is wanted, its reader is ended early, and that is no error.
    let large = tempfile::NamedTempFile::new().unwrap();
    large.as_file().set_len(8 << 20).unwrap();
    assert_eq!(host.read_part(&large.path().display().to_string(), 1, 3).await.unwrap(), [0; 3]);
}
