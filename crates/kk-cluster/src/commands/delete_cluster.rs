//! `kk delete cluster`.

use kk_config::{Host, Spec};
use kk_engine::{Entry, Facts, Module, Pipeline, Plan};

use super::{
    precheck,
    session::{Delete, Session},
};
use crate::{
    base::{error::BuildError, findings::Findings, probed::Probed, slots},
    capabilities::{
        addons::NetworkAddons,
        auto_renew::AutoRenew,
        balancer,
        etcd::Etcd,
        etcd_backup::EtcdBackup,
        kube_proxy::{Ipvs, KubeProxy},
        kubeconfig::Kubeconfig,
        kubelet::Kubelet,
        kubesphere::remove_kubesphere,
        network,
        nodes::Nodes,
        os::{
            Os,
            ownership::{identity, other_run},
        },
        runtime,
    },
    model::{capability::Capabilities, cluster::Scope, inputs::Inputs},
};

impl Session {
    /// The plan of a delete.
    ///
    /// # Errors
    /// A host belongs to another cluster or to a cluster that kk did not create, another run works on a host, or the plan cannot
    /// be built.
    pub fn plan_delete(&self, probed: &Probed) -> Result<Delete, BuildError> {
        let session = self.as_installed(probed, |_| true)?;
        let inputs = session.delete_inputs(probed)?;
        identity::refuse_strangers(&inputs)?;
        other_run::refuse(&inputs)?;
        let plan = Plan::new(pipeline(&inputs), &probed.facts)?;
        let mut found = Findings(precheck::left_by_delete(&inputs));
        remove_kubesphere::findings(&inputs, &mut found);
        Ok(Delete { findings: found.0, plan })
    }
}

/// From a cluster, or the remains of one, back to the hosts as they were before. It applies to hosts that contain anything of kk.
///
/// All hosts are processed at once: no step needs the API or a quorum of etcd, because everything is removed. Only KubeSphere is
/// removed beforehand, if it exists and the API answers. User data (`/var/openebs`, `/var/lib/rook`, volumes elsewhere) and the
/// host's own packet filter rules stay.
pub(crate) fn capabilities(spec: &Spec) -> Capabilities {
    vec![
        &AutoRenew,
        &Kubelet,
        &Ipvs,
        runtime::capability(spec),
        &EtcdBackup,
        &Etcd,
        &KubeProxy,
        network::capability(spec),
        &NetworkAddons,
        balancer::capability(spec),
        &Nodes,
        &Os,
        &Kubeconfig,
    ]
}

pub(crate) fn pipeline(inputs: &Inputs) -> Pipeline {
    let mut modules: Vec<Module> = capabilities(inputs.spec)
        .iter()
        .map(|capability| Module::new(capability.name(), capability.remove(inputs)))
        .collect();
    if let Some(first) = remove_kubesphere::task(inputs) {
        let tasks = modules.iter_mut().flat_map(|module| &mut module.tasks);
        for work in tasks.flat_map(|task| task.hosts.values_mut()) {
            work.after.push(slots::kubesphere_removed_slot());
        }
        modules.insert(0, Module::new("kubesphere", vec![first]));
    }
    Pipeline::new(modules)
}

/// The hosts that contain anything that kk created. kk records each thing before it creates it.
pub(crate) fn scope(inputs: &Inputs) -> Scope {
    let stays = |entry: &Entry| {
        let stays = inputs.requirements.stays.iter().filter(|_| !inputs.options.remove_runtime);
        stays.chain(&inputs.requirements.others).any(|stays| stays.matches(entry))
    };
    let holds = |(_, facts): &(&Host, &Facts)| {
        facts.owned.identity().is_some() || facts.owned.entries().iter().any(|entry| !stays(entry))
    };
    Scope::Hosts(inputs.hosts().into_iter().filter(holds).map(|(host, _)| host.name.clone()).collect())
}
