//! `kk create cluster`.

use kk_config::Spec;
use kk_engine::{HostWork, Module, Pipeline, Task};

use super::session::{Create, Session};
use crate::{
    base::{error::BuildError, findings::Findings, probed::Probed},
    capabilities::{
        addons::{Addons, NetworkAddons, has_network_addons},
        auto_renew::AutoRenew,
        balancer,
        control_plane::ControlPlane,
        dns::Dns,
        etcd::Etcd,
        etcd_backup::EtcdBackup,
        images::Images,
        kube_proxy::KubeProxy,
        kubeconfig::Kubeconfig,
        kubelet::Kubelet,
        kubesphere::KubeSphere,
        manifests::Manifests,
        network,
        nodes::Nodes,
        os::Os,
        programs::Programs,
        runtime,
        verify::Verify,
        versions::Versions,
    },
    model::{
        capability::{Capabilities, Capability, Stage},
        cluster::Presence,
        inputs::Inputs,
    },
};

impl Session {
    /// The plan of a create, with its findings.
    ///
    /// # Errors
    /// The plan cannot be built.
    pub async fn plan_create(&self, probed: &Probed) -> Result<Create, BuildError> {
        let mut inputs = self.create_inputs(probed).await?;
        let found = Findings(self.fetch_addons(&mut inputs).await);
        self.plan(inputs, found, probed).await
    }

    /// The plan for the work of a create that remains at the end of another command. The cluster was changed already, so the rest
    /// is done even if an addon cannot be fetched.
    ///
    /// # Errors
    /// The plan cannot be built.
    pub async fn plan_rest(&self, probed: &Probed) -> Result<Create, BuildError> {
        let mut inputs = self.create_inputs(probed).await?;
        let left_out = self.fetch_or_leave_addons(&mut inputs).await;
        let rest = self.plan(inputs, Findings::default(), probed).await?;
        Ok(Create { left_out, ..rest })
    }
}

/// All capabilities, for all hosts: from bare hosts to a working cluster; on an existing cluster, only what is missing or
/// changed.
///
/// Settings are written while binaries are uploaded in the background. A lane waits for the binaries only when it starts the
/// runtime.
pub(crate) fn capabilities(spec: &Spec) -> Capabilities {
    let mut all: Capabilities = vec![
        &Os,
        &Programs,
        &Etcd,
        &EtcdBackup,
        &Kubelet,
        runtime::capability(spec),
        &Images,
        &ControlPlane,
        &Nodes,
        balancer::capability(spec),
        &KubeProxy,
        network::capability(spec),
    ];
    if has_network_addons(spec) {
        all.push(&NetworkAddons);
    }
    let rest: [&'static dyn Capability; 6] = [&Dns, &Manifests, &Versions, &Kubeconfig, &AutoRenew, &Verify];
    all.extend(rest);
    if !spec.addons.is_empty() {
        // On a working cluster, and before KubeSphere, which may need a StorageClass from an addon.
        all.push(&Addons);
    }
    all.push(&KubeSphere);
    all
}

pub(crate) fn pipeline(inputs: &Inputs) -> Result<Pipeline, BuildError> {
    let modules = modules(inputs)?.into_iter().map(|staged| staged.module).collect();
    Ok(Pipeline::new(modules).outside(inputs.outside().map(|host| host.name.clone())))
}

/// The module of a capability, and when it may run in an upgrade.
pub(super) struct Staged {
    pub stage: Stage,
    pub module: Module,
}

pub(super) fn modules(inputs: &Inputs) -> Result<Vec<Staged>, BuildError> {
    let (mut modules, mut changes) = (Vec::new(), false);
    for capability in capabilities(inputs.spec) {
        let stage = capability.stage();
        if let Some(why) = capability.skipped(inputs) {
            modules.push(Staged { stage, module: Module::skipped(capability.name(), why) });
            continue;
        }
        let mut tasks = capability.install(inputs)?;
        changes = changes || tasks.iter().any(|task| has_changes(inputs, task));
        tasks.extend(capability.verify(inputs, changes));
        modules.push(Staged { stage, module: Module::new(capability.name(), tasks) });
    }
    Ok(modules)
}

/// Whether a task changes a host. Work for the control machine itself does not change the cluster.
pub(super) fn has_changes(inputs: &Inputs, task: &Task) -> bool {
    let of_host = |(name, work): (&String, &HostWork)| match inputs.presence.get(name.as_str()) {
        Some(Presence::Probed(facts)) => work.actions.iter().any(|action| action.check(facts).is_needed()),
        _ => false,
    };
    task.hosts.iter().any(of_host)
}
