//! Send the image of ks-installer.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use kk_artifact::ImageArchive;
use kk_config::Host;
use kk_connector::{UploadFile, quote};
use kk_engine::{
    Action, Apply, Change, Context, Facts, Failure, HostWork, ProbeSpec, Question, Run, Script, Task,
    actions::Upload, question,
};

use crate::{
    base::{
        shell, slots,
        supply::{Installer, pinned},
    },
    capabilities::nodes::record_joins,
    model::{cluster::Runtime, inputs::Inputs},
};

/// The digest of the image that has this name in the runtime of a host. Empty if the image does not exist.
const DIGEST: Question<String> = Question::new("installer_image", ":", question::text);
/// The path of the archive on a host until its runtime has the image.
const TARGET: &str = "/var/lib/kubekey/images/ks-installer.tar";

pub(super) fn asks(inputs: &Inputs, probe: &mut ProbeSpec) {
    if let Installer::Archive(archive) = &inputs.installer {
        let (operations, image) = (inputs.runtime.operations, pinned(archive));
        let ask = format!("{operations}! runtime_runs || runtime_digest {}", quote(&image));
        probe.ask(&DIGEST.with_snippet(ask));
    }
}

/// Sends the image from the archive on the control machine to all control planes, because the operator may move from one to
/// another.
pub(super) fn task(inputs: &Inputs) -> Task {
    let mut task = Task::new("send_image", "Send the image of ks-installer")
        .timeout(Duration::from_mins(30))
        .background();
    let Installer::Archive(archive) = &inputs.installer else { return task };
    // In commands other than a create, only new hosts get the image.
    let gets =
        |(host, _): &(&Host, &Facts)| inputs.command.is_create() || record_joins::is_unfinished(inputs, host);
    for (host, _) in inputs.control_planes().into_iter().filter(gets) {
        let send = Send { archive: archive.clone(), runtime: inputs.runtime };
        let work = HostWork::new(vec![Box::new(send)])
            .needs(slots::runtime_slot(&host.name))
            .provides(slots::installer_image_slot(&host.name));
        task = task.on(&host.name, work);
    }
    task
}

#[derive(Clone)]
struct Send {
    archive: Arc<ImageArchive>,
    runtime: Runtime,
}

impl Action for Send {
    fn check(&self, facts: &Facts) -> Change {
        if facts.answer(&DIGEST).answered().as_deref() == Some(self.archive.digest.as_str()) {
            return Change::None;
        }
        Change::needed(format!("import {} from {}", self.archive.name, self.archive.path.display()))
    }

    fn apply(&self, _facts: &Facts) -> Apply {
        Apply::Run(Arc::new(self.clone()))
    }

    fn hint(&self, stderr: &str) -> Option<String> {
        let full = stderr.contains("No space left") || stderr.contains("no space left");
        full.then(|| format!("free space on the host: {TARGET} and the runtime need it, and run again"))
    }
}

#[async_trait]
impl Run for Send {
    async fn run(&self, context: Context) -> Result<(), Failure> {
        let source = self.archive.path.clone();
        let sum = tokio::task::spawn_blocking({
            let archive = self.archive.clone();
            move || archive.sum()
        });
        let sum = sum.await.map_err(|error| Failure::new(error.to_string()))?;
        let sha256 =
            sum.map_err(|error| Failure::new(format!("cannot read {}: {error}", source.display())))?;
        let image = pinned(&self.archive);
        let variables =
            [("name", self.archive.name.as_str()), ("image", image.as_str()), ("archive", TARGET)];
        let text = self.runtime.operations.to_owned() + include_str!("import.sh");
        let import = Script::new(shell::script(&variables, &text));
        let file = UploadFile { source, target: TARGET.to_owned(), mode: 0o600, sha256 };
        match Upload::new(vec![file]).taken_by(import).apply(&Facts::default()) {
            Apply::Run(run) => run.run(context).await,
            _ => Ok(()),
        }
    }

    fn transfers(&self) -> bool {
        true
    }
}
