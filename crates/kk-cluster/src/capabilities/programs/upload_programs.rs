//! The action that uploads binaries to a host. The list of files may be known only after the download.

use std::sync::Arc;

use async_trait::async_trait;
use kk_artifact::{Component, LocalFile};
use kk_config::Host;
use kk_connector::UploadFile;
use kk_engine::{Action, Apply, Change, Context, Facts, Failure, Run, Slot, actions::Upload};

use crate::{base::slots, model::inputs::Inputs};

/// The binaries of some components.
pub(crate) struct UploadPrograms {
    components: Vec<Program>,
}

/// A component, with its files if they are known, and the slot that supplies them later.
#[derive(Clone)]
struct Program {
    name: String,
    directory: &'static str,
    known: Option<Vec<LocalFile>>,
    later: Slot<Vec<LocalFile>>,
}

impl UploadPrograms {
    /// These components for the architecture of this host.
    pub(crate) fn new(inputs: &Inputs, host: &Host, components: &[Component]) -> Self {
        let arch = inputs.arch(host);
        let components = components
            .iter()
            .map(|component| {
                let (artifact, known) = &inputs.programs[&(*component, arch)];
                Program {
                    name: artifact.to_string(),
                    directory: directory(*component),
                    known: known.clone(),
                    later: slots::fetched_slot(*component, arch),
                }
            })
            .collect();
        Self { components }
    }
}

/// The directory of a component's binaries on a host.
fn directory(component: Component) -> &'static str {
    match component {
        Component::CniPlugins => "/opt/cni/bin",
        _ => "/usr/local/bin",
    }
}

fn to_upload_files(directory: &str, files: &[LocalFile]) -> Vec<UploadFile> {
    files
        .iter()
        .map(|file| UploadFile {
            source: file.path.clone(),
            target: format!("{directory}/{}", file.name),
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
                        Upload::new(to_upload_files(program.directory, files)).check(facts)
                    {
                        lines.extend(more);
                    }
                }
                None => lines.push(format!("upload {} to {}", program.name, program.directory)),
            }
        }
        if lines.is_empty() { Change::None } else { Change::Needed(lines) }
    }

    fn apply(&self, facts: &Facts) -> Apply {
        // Hundreds of these actions wait for a permit, so each keeps only the facts that it needs.
        let is_ours = |path: &str| self.components.iter().any(|program| path.starts_with(program.directory));
        let files = facts.files.iter().filter(|(path, _)| is_ours(path));
        let files = files.map(|(path, file)| (path.clone(), file.clone())).collect();
        Apply::Run(Arc::new(Send {
            components: self.components.clone(),
            facts: Facts { files, ..Facts::default() },
        }))
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
            files.extend(to_upload_files(program.directory, known));
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
