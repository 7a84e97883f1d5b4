//! Large files from this machine.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use async_trait::async_trait;
use kk_connector::{Command, Payload, UploadFile, quote};
use tokio::sync::mpsc;

use super::{hints, lines};
use crate::{Action, Apply, Change, Context, Facts, Failure, ProbeSpec, Run, shell};

/// Large files from this machine. Only those whose SHA-256 differs travel; each lands whole or not at all.
#[derive(Clone)]
pub struct Upload {
    files: Vec<UploadFile>,
}

impl Upload {
    /// These files, in the order in which they are wanted. Their owner is root.
    pub fn new(files: Vec<UploadFile>) -> Self {
        Self { files }
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
        let files: Vec<UploadFile> = self.differing(facts).cloned().collect();
        let recorded: BTreeSet<&str> = facts
            .owned
            .iter()
            .filter_map(|line| line.strip_prefix("made\t").or(line.strip_prefix("saved\t")))
            .collect();
        let own = files
            .iter()
            .map(|file| file.target.clone())
            .filter(|path| !recorded.contains(path.as_str()))
            .collect();
        Apply::Run(Arc::new(Transfer { files, own }))
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
    /// Targets that are not written down on the host yet.
    own: Vec<String>,
}

#[async_trait]
impl Run for Transfer {
    async fn run(&self, context: Context) -> Result<(), Failure> {
        if !self.own.is_empty() {
            let text =
                self.own.iter().fold(String::new(), |text, path| text + "kk_own " + &quote(path) + "\n");
            script(&context, &text, Vec::new()).await?;
        }
        self.upload(&context).await?;
        let sums = self
            .files
            .iter()
            .fold(String::new(), |text, file| text + &file.sha256 + " " + &file.target + "\n");
        let list = Payload { name: "list".into(), content: sums.into_bytes().into() };
        script(&context, "kk_remember_sums list\n", vec![list]).await
    }

    fn transfers(&self) -> bool {
        true
    }
}

impl Transfer {
    async fn upload(&self, context: &Context) -> Result<(), Failure> {
        let sizes =
            self.files.iter().map(|file| std::fs::metadata(&file.source).map_or(0, |data| data.len()));
        let total: u64 = sizes.sum();
        let (progress, mut sent) = mpsc::unbounded_channel();
        let upload = kk_connector::Upload {
            files: self.files.clone(),
            // The runner ends it with the task's timeout, through `cancel`.
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
        outcome?;
        Ok(())
    }
}

/// A small script of the transfer's own, a round trip.
async fn script(context: &Context, text: &str, files: Vec<Payload>) -> Result<(), Failure> {
    let mut command = Command::new(shell::with_lib(text));
    command.files = files;
    command.cancel = context.cancel.clone();
    let output = context.connection.run(command).await?;
    if output.code == 0 {
        return Ok(());
    }
    Err(Failure {
        command: text.lines().next().map(str::to_owned),
        code: Some(output.code),
        stderr: output.stderr.lines().map(str::to_owned).collect(),
        ..Failure::new("cannot prepare for the files")
    })
}
