//! Transfers large files from the control machine.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use kk_connector::{Error, Payload, UploadFile, UploadHooks, quote};
use tokio::sync::mpsc;

use super::{hints, lines};
use crate::{Action, Apply, Change, Context, Facts, Failure, ProbeSpec, Run, Script, shell};

/// Large files from the control machine, all in one round trip. Only files whose SHA-256 differs are sent. Each file arrives
/// completely or not at all, and is entered in the host's ownership record before.
#[derive(Clone)]
pub struct Upload {
    files: Vec<UploadFile>,
    taker: Option<Script>,
}

impl Upload {
    /// These files, in the order in which they are needed. Their owner is root.
    pub fn new(files: Vec<UploadFile>) -> Self {
        Self { files, taker: None }
    }

    /// The files are only for a script. It runs in the same round trip when all files have arrived, and removes them. The
    /// script's own files are in its directory.
    #[must_use]
    pub fn taken_by(mut self, script: Script) -> Self {
        self.taker = Some(script);
        self
    }

    fn differing<'a>(&'a self, facts: &'a Facts) -> impl Iterator<Item = &'a UploadFile> {
        self.files.iter().filter(|file| {
            let there = facts.files.get(&file.target);
            !there
                .is_some_and(|there| there.sha256 == file.sha256 && there.mode == format!("{:o}", file.mode))
        })
    }
}

impl Action for Upload {
    fn check(&self, facts: &Facts) -> Change {
        lines(self.differing(facts).map(|file| format!("upload {}", file.target)).collect())
    }

    fn apply(&self, facts: &Facts) -> Apply {
        let files = self.differing(facts).cloned().collect();
        Apply::Run(Arc::new(Transfer { files, taker: self.taker.clone() }))
    }

    fn asks(&self, spec: &mut ProbeSpec) {
        spec.files.extend(self.files.iter().map(|file| file.target.clone()));
    }

    fn hint(&self, stderr: &str) -> Option<String> {
        let named = self.files.iter().find(|file| stderr.contains(&file.target)).or(self.files.first());
        named.and_then(|file| hints::at_path(&file.target, stderr))
    }
}

/// The transfer of the files that differ.
struct Transfer {
    files: Vec<UploadFile>,
    taker: Option<Script>,
}

#[async_trait]
impl Run for Transfer {
    async fn run(&self, context: Context) -> Result<(), Failure> {
        let sizes =
            self.files.iter().map(|file| std::fs::metadata(&file.source).map_or(0, |data| data.len()));
        let total: u64 = sizes.sum();
        let (progress, mut sent) = mpsc::unbounded_channel();
        let upload = kk_connector::Upload {
            files: self.files.clone(),
            hooks: self.hooks(),
            // The runner ends the upload at the task's timeout, through `cancel`.
            timeout: Duration::from_hours(24),
            cancel: context.cancel.clone(),
            progress: Some(progress),
        };
        let report = async {
            let mut done = 0;
            while let Some(bytes) = sent.recv().await {
                done += bytes;
                (context.progress)(done, total);
            }
        };
        let (outcome, ()) = tokio::join!(context.connection.upload(upload), report);
        outcome.map_err(failure)?;
        Ok(())
    }

    fn transfers(&self) -> bool {
        true
    }
}

impl Transfer {
    /// Records the targets before the first byte is sent, so that a delete finds them in any case. Afterwards stores the
    /// checksums, so that the next probe need not read the files.
    fn hooks(&self) -> UploadHooks {
        let (mut own, mut sums) = (String::new(), String::new());
        for UploadFile { target, sha256, .. } in &self.files {
            own = own + "kk_own " + &quote(target) + "\n";
            sums = sums + sha256 + " " + target + "\n";
        }
        let payload = |name: &str, text: &str| Payload { name: name.into(), content: text.as_bytes().into() };
        let mut files = vec![payload("lib.sh", shell::LIB), payload("sums", &sums)];
        let after = match &self.taker {
            None => "kk_remember_sums sums\n",
            Some(script) => {
                files.extend(script.files.iter().cloned());
                &script.text
            }
        };
        UploadHooks {
            lock: None,
            before: Some(format!("{}. ./lib.sh\n{own}", shell::RESET).into()),
            after: Some(format!("{}. ./lib.sh\n{after}", shell::RESET).into()),
            files,
        }
    }
}

fn failure(error: Error) -> Failure {
    let hint = match &error {
        Error::Transfer { path, reason, .. } => hints::at_path(path, reason),
        _ => None,
    };
    let failure = Failure::from(error);
    Failure { hint: hint.or(failure.hint), ..failure }
}
