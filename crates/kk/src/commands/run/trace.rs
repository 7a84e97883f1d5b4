//! `--debug`: logs all scripts as they are sent to the hosts.
//!
//! Scripts contain no secrets (those are sent as files), and the redactor removes secrets that a tool may have quoted. Standard
//! output is not logged: it is data, such as a kubeconfig.

use std::{
    fs::{File, OpenOptions},
    io::{self, Write},
    os::unix::fs::OpenOptionsExt,
    path::Path,
    sync::{Arc, Mutex, PoisonError},
    time::Instant,
};

use async_trait::async_trait;
use kk_connector::{Command, Connection, Error, Output, Stats, Upload, UploadOutcome};
use kk_engine::Redactor;

/// The file, shared by all connections.
#[derive(Clone)]
pub(super) struct Trace {
    file: Arc<Mutex<File>>,
    redactor: Redactor,
}

impl Trace {
    /// Creates `debug.log` in the directory of a run, readable only by its owner.
    pub(super) fn create(run_directory: &Path, redactor: Redactor) -> io::Result<Self> {
        let path = run_directory.join("debug.log");
        let file = OpenOptions::new().append(true).create(true).mode(0o600).open(path)?;
        Ok(Self { file: Arc::new(Mutex::new(file)), redactor })
    }

    /// Wraps a connection so that it is logged.
    pub(super) fn connection(&self, inner: Arc<dyn Connection>) -> Arc<dyn Connection> {
        Arc::new(Traced { inner, trace: self.clone() })
    }

    /// Writes an entry: a heading and its lines. Concurrent entries of several hosts are not mixed.
    fn write(&self, heading: &str, text: &str) {
        let lines: String = self.redactor.text(text).lines().map(|line| format!("    {line}\n")).collect();
        let entry = format!("== {heading}\n{lines}");
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        // A log that cannot be written does not end a run.
        let _ = file.write_all(entry.as_bytes());
    }
}

struct Traced {
    inner: Arc<dyn Connection>,
    trace: Trace,
}

#[async_trait]
impl Connection for Traced {
    fn host(&self) -> &str {
        self.inner.host()
    }

    async fn run(&self, command: Command) -> Result<Output, Error> {
        let host = self.host().to_owned();
        self.trace.write(&format!("{host}: script"), &command.script);
        let began = Instant::now();
        let result = self.inner.run(command).await;
        let took = began.elapsed().as_millis();
        match &result {
            Ok(Output { code, stdout, stderr, .. }) => {
                let heading =
                    format!("{host}: exit code {code} after {took} ms, {} bytes of output", stdout.len());
                self.trace.write(&heading, stderr);
            }
            Err(error) => self.trace.write(&format!("{host}: failed after {took} ms"), &error.to_string()),
        }
        result
    }

    async fn upload(&self, upload: Upload) -> Result<UploadOutcome, Error> {
        let files: Vec<String> = upload.files.iter().map(|file| file.target.clone()).collect();
        self.trace.write(&format!("{}: upload", self.host()), &files.join("\n"));
        self.inner.upload(upload).await
    }

    async fn read_part(&self, path: &str, offset: u64, most: u64) -> Result<Vec<u8>, Error> {
        self.trace.write(&format!("{}: download", self.host()), path);
        self.inner.read_part(path, offset, most).await
    }

    fn stats(&self) -> Stats {
        self.inner.stats()
    }

    async fn close(&self) {
        self.inner.close().await;
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use kk_connector::FakeHost;

    use super::*;

    #[tokio::test]
    async fn scripts_are_written_down_without_secrets_and_without_their_output() {
        let directory = tempfile::tempdir().unwrap();
        let redactor = Redactor::new(["hunter2".to_owned()]);
        let trace = Trace::create(directory.path(), redactor).unwrap();
        let output = Output { code: 3, stdout: "private key".into(), stderr: "no hunter2 here".into() };
        let host = trace.connection(Arc::new(FakeHost::new("node1").on("login", output)));
        assert_eq!(host.run(Command::new("login\n--password hunter2")).await.unwrap().code, 3);

        let log = fs::read_to_string(directory.path().join("debug.log")).unwrap();
        let lines: Vec<&str> = log.lines().collect();
        assert_eq!(lines[..3], ["== node1: script", "    login", "    --password ***"]);
        assert!(
            lines[3].starts_with("== node1: exit code 3 after ") && lines[3].ends_with("11 bytes of output")
        );
        assert_eq!(lines[4..], ["    no *** here"]);
    }
}
