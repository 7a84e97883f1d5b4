//! The action that sends programs to a host. Which files these are may be known only after their download.

use std::sync::Arc;

use async_trait::async_trait;
use kk_artifact::{Component, LocalFile};
use kk_config::Host;
use kk_connector::UploadFile;
use kk_engine::{Action, Apply, Change, Context, Facts, Failure, Run, Slot, actions::Upload};

use super::{fetched, folder};
use crate::Target;

/// The programs of some components.
pub(crate) struct UploadPrograms {
    components: Vec<Program>,
}

/// One component: its files when they are known, and the slot that tells them later.
#[derive(Clone)]
struct Program {
    name: String,
    folder: &'static str,
    known: Option<Vec<LocalFile>>,
    later: Slot<Vec<LocalFile>>,
}

impl UploadPrograms {
    /// These components for this host's architecture.
    pub(crate) fn new(target: &Target, host: &Host, components: &[Component]) -> Self {
        let arch = target.arch(host);
        let components = components
            .iter()
            .map(|component| {
                let (artifact, known) = &target.programs[&(*component, arch)];
                Program {
                    name: artifact.to_string(),
                    folder: folder(*component),
                    known: known.clone(),
                    later: fetched(*component, arch),
                }
            })
            .collect();
        Self { components }
    }
}

fn upload_files(folder: &str, files: &[LocalFile]) -> Vec<UploadFile> {
    files
        .iter()
        .map(|file| UploadFile {
            source: file.path.clone(),
            target: format!("{folder}/{}", file.name),
            mode: file.mode,
            sha256: file.sha256.clone(),
        })
        .collect()
}

impl Action for UploadPrograms {
    fn check(&self, facts: &Facts) -> Change {
        let mut lines = Vec::new();
        for program in &self.components {
            match &program.known {
                Some(files) => {
                    if let Change::Needed(more) =
                        Upload::new(upload_files(program.folder, files)).check(facts)
                    {
                        lines.extend(more);
                    }
                }
                None => lines.push(format!("upload {} to {}", program.name, program.folder)),
            }
        }
        if lines.is_empty() { Change::None } else { Change::Needed(lines) }
    }

    fn apply(&self, facts: &Facts) -> Apply {
        Apply::Run(Arc::new(Send { components: self.components.clone(), facts: facts.clone() }))
    }
}

struct Send {
    components: Vec<Program>,
    facts: Facts,
}

#[async_trait]
impl Run for Send {
    async fn run(&self, context: Context) -> Result<(), Failure> {
        let mut files = Vec::new();
        for program in &self.components {
            let fetched = context.slots.get(&program.later);
            let known = fetched.as_deref().or(program.known.as_ref());
            let known = known.ok_or_else(|| Failure::new(format!("{} was not fetched", program.name)))?;
            files.extend(upload_files(program.folder, known));
        }
        match Upload::new(files).apply(&self.facts) {
            Apply::Run(run) => run.run(context).await,
            _ => Ok(()),
        }
    }

    fn transfers(&self) -> bool {
        true
    }
}
