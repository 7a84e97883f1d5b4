//! Share the cluster's CAs with further control planes, through the control machine's memory only.

use std::sync::Arc;

use async_trait::async_trait;
use kk_config::{Role, Secret};
use kk_connector::Command;
use kk_engine::{Action, Apply, Change, Context, Facts, Failure, HostWork, Run, Task};

use crate::{inputs::Inputs, slots};

const READ: &str = "tar -C /etc/kubernetes/pki -cf - ca.crt ca.key sa.pub sa.key front-proxy-ca.crt front-proxy-ca.key | base64 -w 0\n";

/// Only when a further control plane is to join.
pub(super) fn task(inputs: &Inputs) -> Task {
    let task = Task::new("share_certificates", "Share the cluster's CAs");
    if !inputs.joining().iter().any(|host| host.has_role(&Role::ControlPlane)) {
        return task;
    }
    task.on(
        &inputs.api_host.name,
        HostWork::new(vec![Box::new(Share)])
            .needs(slots::initialised_slot())
            .provides(slots::cluster_certificates_slot().key()),
    )
}

struct Share;

impl Action for Share {
    fn check(&self, _facts: &Facts) -> Change {
        Change::needed("read the cluster's CAs")
    }

    fn apply(&self, _facts: &Facts) -> Apply {
        Apply::Run(Arc::new(Share))
    }
}

#[async_trait]
impl Run for Share {
    async fn run(&self, context: Context) -> Result<(), Failure> {
        let mut command = Command::new(READ);
        command.cancel = context.cancel.clone();
        let output = context.connection.run(command).await?;
        if output.code != 0 {
            return Err(Failure {
                stderr: output.stderr.lines().map(str::to_owned).collect(),
                ..Failure::new("cannot read the cluster's CAs")
            });
        }
        context.slots.fill(&slots::cluster_certificates_slot(), Secret::new(output.stdout));
        Ok(())
    }
}
