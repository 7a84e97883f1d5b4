//! Download binaries to the control machine.

use std::sync::Arc;

use async_trait::async_trait;
use kk_artifact::{Artifact, Component, LocalFile, Store};
use kk_config::Arch;
use kk_engine::{Action, Apply, CONTROL, Change, Context, Facts, Failure, HostWork, Run, SlotKey, Task};

use super::fetch::fetch;
use crate::{
    base::{requirements::ProgramStage, slots},
    model::inputs::Inputs,
};

/// One task for each component and architecture. Tasks of a group run concurrently, and binaries that start first are downloaded
/// first. Files that an earlier run fetched are used without a download.
pub(super) fn tasks(inputs: &Inputs) -> Vec<Task> {
    let mut tasks = Vec::new();
    let mut before: Vec<SlotKey> = Vec::new();
    for stage in [ProgramStage::Runtime, ProgramStage::Join, ProgramStage::Tools] {
        let group = wanted(inputs, stage);
        tasks.extend(group.iter().map(|(component, arch)| task(inputs, *component, *arch, &before)));
        before = group.iter().map(|(component, arch)| slots::fetched_slot(*component, *arch).key()).collect();
    }
    tasks
}

/// The components that any host needs by this stage, once for each architecture.
fn wanted(inputs: &Inputs, stage: ProgramStage) -> Vec<(Component, Arch)> {
    let mut wanted = Vec::new();
    for (host, _) in inputs.hosts() {
        for component in inputs.requirements.programs(host, stage) {
            if !wanted.contains(&(component, inputs.arch(host))) {
                wanted.push((component, inputs.arch(host)));
            }
        }
    }
    wanted
}

fn task(inputs: &Inputs, component: Component, arch: Arch, before: &[SlotKey]) -> Task {
    let (artifact, files) = &inputs.programs[&(component, arch)];
    let action =
        Download { artifact: artifact.clone(), arch, store: inputs.store.clone(), needed: files.is_none() };
    let mut work = HostWork::new(vec![Box::new(action)]).provides(slots::fetched_slot(component, arch).key());
    // Only for the order: a failed download must not hide the errors of the others.
    work.after.extend_from_slice(before);
    let name = format!("download_{}", component.name().replace('-', "_"));
    Task::new(name, format!("Download {}", component.title()))
        .on(CONTROL, work)
        .timeout(std::time::Duration::from_hours(1))
        .background()
}

struct Download {
    artifact: Artifact,
    arch: Arch,
    store: Arc<Store>,
    needed: bool,
}

impl Action for Download {
    fn check(&self, _facts: &Facts) -> Change {
        if self.needed { Change::needed(format!("download {}", self.artifact)) } else { Change::None }
    }

    fn apply(&self, _facts: &Facts) -> Apply {
        Apply::Run(Arc::new(Fetch {
            artifact: self.artifact.clone(),
            arch: self.arch,
            store: self.store.clone(),
        }))
    }
}

struct Fetch {
    artifact: Artifact,
    arch: Arch,
    store: Arc<Store>,
}

#[async_trait]
impl Run for Fetch {
    async fn run(&self, context: Context) -> Result<(), Failure> {
        let files: Vec<LocalFile> = fetch(&self.store, &self.artifact, &context).await?;
        context.slots.fill(&slots::fetched_slot(self.artifact.component, self.arch), files);
        Ok(())
    }
}
