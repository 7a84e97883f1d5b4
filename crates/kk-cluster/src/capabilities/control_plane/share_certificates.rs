//! Share the cluster's CAs with further control planes, only through the memory of the control machine.

use std::sync::Arc;

use async_trait::async_trait;
use kk_config::Role;
use kk_connector::Command;
use kk_engine::{Action, Apply, Change, Context, Facts, Failure, HostWork, Run, Slot, Task};

use super::shared_files::{FOR_JOINS, source_for_joins};
use crate::{
    base::{
        shared_files::{self, SharedFiles},
        slots,
    },
    model::inputs::Inputs,
};

/// Does nothing unless a further control plane is to join.
pub(super) fn task(inputs: &Inputs) -> Task {
    let task = Task::new("share_certificates", "Share the cluster's CAs");
    if !inputs.joining().iter().any(|host| host.has_role(&Role::ControlPlane)) {
        return task;
    }
    let read = Read { names: &FOR_JOINS, slot: slots::cluster_certificates_slot };
    task.on(
        &source_for_joins(inputs).name,
        HostWork::new(vec![Box::new(read)])
            .needs(slots::initialised_slot())
            .provides(slots::cluster_certificates_slot().key()),
    )
}

/// Reads files of `/etc/kubernetes/pki` into a slot.
#[derive(Clone, Copy)]
pub(super) struct Read {
    pub names: &'static [&'static str],
    pub slot: fn() -> Slot<SharedFiles>,
}

impl Action for Read {
    fn check(&self, _facts: &Facts) -> Change {
        Change::needed("read what control planes share")
    }

    fn apply(&self, _facts: &Facts) -> Apply {
        Apply::Run(Arc::new(*self))
    }

    /// The host stays as it is.
    fn is_change(&self) -> bool {
        false
    }
}

#[async_trait]
impl Run for Read {
    async fn run(&self, context: Context) -> Result<(), Failure> {
        let mut command = Command::new(shared_files::print(self.names));
        command.cancel = context.cancel.clone();
        let output = context.connection.run(command).await?;
        let failed = |why: &str| Failure {
            stderr: output.stderr.lines().map(str::to_owned).collect(),
            ..Failure::new(format!("cannot read what control planes share{why}"))
        };
        if output.code != 0 {
            return Err(failed(""));
        }
        let files = SharedFiles::parse(self.names, &output.stdout)
            .map_err(|problem| failed(&format!(": {problem}")))?;
        context.slots.fill(&(self.slot)(), files);
        Ok(())
    }
}
