//! A host for tests: answers by rules, records the calls, keeps uploaded files in memory. It runs no hooks of uploads.
//!
//! ```
//! use kk_connector::{Command, Connection, FakeHost, Output};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() {
//! let host = FakeHost::new("node1").on("kubeadm init", Output { code: 1, ..Output::default() });
//! assert_eq!(host.run(Command::new("exec kubeadm init")).await.unwrap().code, 1);
//! assert_eq!(host.run(Command::new("anything else")).await.unwrap().code, 0);
//! assert_eq!(host.scripts(), ["exec kubeadm init", "anything else"]);
//! # }
//! ```

use std::{
    collections::BTreeMap,
    fs,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use async_trait::async_trait;
use tokio_util::sync::CancellationToken;

use crate::{Command, Connection, Error, Output, Stats, Upload, UploadFile, UploadOutcome, stats::Counters};

/// A host that exists only in memory. Rules are tried in the order in which they were added. A script that matches no rule
/// succeeds with no output.
pub struct FakeHost {
    name: String,
    rules: Vec<Rule>,
    refusals: Vec<(String, String)>,
    record: Mutex<Record>,
    counters: Counters,
}

type Matcher = Box<dyn Fn(&Command) -> bool + Send + Sync>;
type Answer = Box<dyn Fn(&Command) -> Result<Output, Error> + Send + Sync>;

struct Rule {
    fits: Matcher,
    after: Duration,
    answer: Answer,
}

#[derive(Default)]
struct Record {
    commands: Vec<Command>,
    uploads: Vec<Upload>,
    files: BTreeMap<String, FakeFile>,
}

/// A file on a [`FakeHost`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FakeFile {
    /// The content of the file.
    pub content: Vec<u8>,
    /// Permission bits.
    pub mode: u32,
}

impl FakeHost {
    /// A host without files on which every script succeeds.
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            rules: Vec::new(),
            refusals: Vec::new(),
            record: Mutex::default(),
            counters: Counters::default(),
        }
    }

    /// Scripts that contain `text` return `output`.
    #[must_use]
    pub fn on(self, text: impl Into<String>, output: Output) -> Self {
        self.on_after(text, Duration::ZERO, output)
    }

    /// Scripts that contain `text` return `output` after some time, unless they time out or are cancelled before.
    #[must_use]
    pub fn on_after(mut self, text: impl Into<String>, after: Duration, output: Output) -> Self {
        let text = text.into();
        let fits: Matcher = Box::new(move |command| command.script.contains(&text));
        self.rules.push(Rule { fits, after, answer: Box::new(move |_| Ok(output.clone())) });
        self
    }

    /// Scripts for which `fits` returns true get the result of `answer`.
    #[must_use]
    pub fn on_fn(
        mut self,
        fits: impl Fn(&Command) -> bool + Send + Sync + 'static,
        answer: impl Fn(&Command) -> Result<Output, Error> + Send + Sync + 'static,
    ) -> Self {
        self.rules.push(Rule { fits: Box::new(fits), after: Duration::ZERO, answer: Box::new(answer) });
        self
    }

    /// Uploads to paths that contain `text` fail with `reason`.
    #[must_use]
    pub fn refuse_upload(mut self, text: impl Into<String>, reason: impl Into<String>) -> Self {
        self.refusals.push((text.into(), reason.into()));
        self
    }

    /// Puts a file on the host.
    #[must_use]
    pub fn with_file(self, path: impl Into<String>, content: impl Into<Vec<u8>>, mode: u32) -> Self {
        self.record().files.insert(path.into(), FakeFile { content: content.into(), mode });
        self
    }

    /// The commands that were run, in order.
    pub fn commands(&self) -> Vec<Command> {
        self.record().commands.clone()
    }

    /// The scripts that were run, in order.
    pub fn scripts(&self) -> Vec<String> {
        self.record().commands.iter().map(|command| command.script.to_string()).collect()
    }

    /// The uploads that were made, in order.
    pub fn uploads(&self) -> Vec<Upload> {
        self.record().uploads.clone()
    }

    /// The host's files by path.
    pub fn files(&self) -> BTreeMap<String, FakeFile> {
        self.record().files.clone()
    }

    fn record(&self) -> MutexGuard<'_, Record> {
        self.record.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits like a real host, until the time is over, the limit is reached or the call is cancelled.
    async fn pass(&self, time: Duration, limit: Duration, cancel: &CancellationToken) -> Result<(), Error> {
        tokio::select! {
            biased;
            () = cancel.cancelled() => Err(Error::Cancelled { host: self.name.clone() }),
            () = tokio::time::sleep(time.min(limit)) => {
                if time < limit { Ok(()) } else { Err(Error::Timeout { host: self.name.clone(), after: limit }) }
            }
        }
    }

    fn receive(&self, file: &UploadFile) -> Result<u64, Error> {
        let failed =
            |reason: String| Error::Transfer { host: self.name.clone(), path: file.target.clone(), reason };
        let content = fs::read(&file.source).map_err(|error| Error::Read {
            host: "this machine".into(),
            path: file.source.display().to_string(),
            reason: error.to_string(),
        })?;
        if let Some((_, reason)) = self.refusals.iter().find(|(text, _)| file.target.contains(text)) {
            return Err(failed(reason.clone()));
        }
        let sum = kk_util::sha256(&content);
        if sum != file.sha256 {
            return Err(failed(format!("its SHA-256 is {sum}, not {}", file.sha256)));
        }
        let new = FakeFile { content, mode: file.mode };
        let bytes = new.content.len() as u64;
        let mut record = self.record();
        let there = record.files.get(&file.target).is_some_and(|old| old.content == new.content);
        record.files.insert(file.target.clone(), new);
        Ok(if there { 0 } else { bytes })
    }
}

#[async_trait]
impl Connection for FakeHost {
    fn host(&self) -> &str {
        &self.name
    }

    async fn run(&self, command: Command) -> Result<Output, Error> {
        self.counters.attempt();
        self.record().commands.push(command.clone());
        let rule = self.rules.iter().find(|rule| (rule.fits)(&command));
        let after = rule.map_or(Duration::ZERO, |rule| rule.after);
        self.pass(after, command.timeout, &command.cancel).await?;
        let output = rule.map_or_else(|| Ok(Output::default()), |rule| (rule.answer)(&command))?;
        for line in output.stdout.lines() {
            if let Some(lines) = &command.lines {
                tokio::select! {
                    biased;
                    // A receiver that is gone is no error.
                    sent = lines.send(line.to_owned()) => drop(sent),
                    () = command.cancel.cancelled() => break,
                }
            }
        }
        self.counters.moved(command.script.len() as u64, (output.stdout.len() + output.stderr.len()) as u64);
        Ok(output)
    }

    async fn upload(&self, upload: Upload) -> Result<UploadOutcome, Error> {
        self.counters.attempt();
        self.record().uploads.push(upload.clone());
        let mut outcome = UploadOutcome::default();
        for file in &upload.files {
            self.pass(Duration::ZERO, upload.timeout, &upload.cancel).await?;
            let bytes = self.receive(file)?;
            outcome.bytes += bytes;
            if let Some(progress) = &upload.progress {
                // A receiver that is gone is no error.
                let _ = progress.send(bytes);
            }
        }
        self.counters.moved(outcome.bytes, 0);
        Ok(outcome)
    }

    async fn read_part(&self, path: &str, offset: u64, most: u64) -> Result<Vec<u8>, Error> {
        self.counters.attempt();
        let failed = |reason: String| Error::Read { host: self.name.clone(), path: path.to_owned(), reason };
        let content = self.record().files.get(path).map(|file| file.content.clone());
        let content = content.ok_or_else(|| failed("no such file".into()))?;
        let rest = content.get(usize::try_from(offset).unwrap_or(usize::MAX)..).unwrap_or_default();
        let part = &rest[..rest.len().min(usize::try_from(most).unwrap_or(usize::MAX))];
        self.counters.moved(0, part.len() as u64);
        Ok(part.to_vec())
    }

    fn stats(&self) -> Stats {
        self.counters.stats()
    }

    async fn close(&self) {}
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::UploadHooks;

    fn upload(source: &std::path::Path, target: &str, sha256: &str) -> Upload {
        Upload {
            files: vec![UploadFile {
                source: source.into(),
                target: target.into(),
                mode: 0o644,
                sha256: sha256.into(),
            }],
            hooks: UploadHooks::default(),
            timeout: Duration::from_secs(1),
            cancel: CancellationToken::new(),
            progress: None,
        }
    }

    #[tokio::test(start_paused = true)]
    async fn the_first_fitting_rule_answers_in_its_time() {
        let host = FakeHost::new("n")
            .on_after("slow", Duration::from_secs(5), Output { code: 3, ..Output::default() })
            .on("slow", Output::default());
        assert_eq!(host.run(Command::new("slow")).await.unwrap().code, 3);
        let short = Command { timeout: Duration::from_secs(1), ..Command::new("slow") };
        assert!(matches!(host.run(short).await, Err(Error::Timeout { .. })));
        let cancelled = Command::new("slow");
        cancelled.cancel.cancel();
        assert!(matches!(host.run(cancelled).await, Err(Error::Cancelled { .. })));
        assert_eq!(host.stats().round_trips, 3);
    }

    #[tokio::test]
    async fn files_are_checked_kept_and_read_back() {
        let source = tempfile::NamedTempFile::new().unwrap();
        fs::write(&source, "abc").unwrap();
        let sum = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        let host = FakeHost::new("n").refuse_upload("/full/", "No space left on device");
        assert_eq!(host.upload(upload(source.path(), "/x", sum)).await.unwrap().bytes, 3);
        assert_eq!(host.upload(upload(source.path(), "/x", sum)).await.unwrap().bytes, 0);
        assert_eq!(host.download("/x", 3).await.unwrap(), b"abc");
        assert!(matches!(host.download("/x", 2).await, Err(Error::Read { .. })));
        assert!(matches!(host.upload(upload(source.path(), "/y", "0")).await, Err(Error::Transfer { .. })));
        assert!(matches!(
            host.upload(upload(source.path(), "/full/y", sum)).await,
            Err(Error::Transfer { .. })
        ));
        assert_eq!(host.files().keys().collect::<Vec<_>>(), ["/x"]);
    }
}
