//! Share the cluster's CAs with further control planes, through this machine's memory only.

use std::sync::Arc;

use async_trait::async_trait;
use kk_config::Secret;
use kk_connector::Command;
use kk_engine::{Action, Apply, Change, Context, Facts, Failure, HostWork, Run, Slot, Task};

use crate::{
    Target,
    modules::{joining, slots},
};

/// The files that kubeadm wants on every control plane (its documentation, "Manual certificate distribution"), as one
/// Base64 text of a tar archive relative to `/etc/kubernetes/pki`.
pub(super) fn shared() -> Slot<Secret> {
    Slot::new("cluster_certificates")
}

const READ: &str = "tar -C /etc/kubernetes/pki -cf - ca.crt ca.key sa.pub sa.key front-proxy-ca.crt front-proxy-ca.key | base64 -w 0\n";

/// Only when a further control plane is to join.
pub(super) fn task(target: &Target) -> Task {
    let task = Task::new("share_certificates", "Share the cluster's CAs");
    if !joining(target).iter().any(|host| host.has_role(&kk_config::Role::ControlPlane)) {
        return task;
    }
    task.on(
        &target.spec.first_control_plane().name,
        HostWork::new(vec![Box::new(Share)]).needs(slots::initialised().key()).provides(shared().key()),
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
        context.slots.fill(&shared(), Secret::new(output.stdout));
        Ok(())
    }
}
