//! `kk delete cluster`.

use kk_config::{Host, Spec};
use kk_engine::{Entry, Facts, Module, Pipeline};

use crate::{
    BuildError,
    capabilities::{
        etcd::Etcd, kube_proxy::KubeProxy, kubeconfig::Kubeconfig, kubelet::Kubelet, network, nodes::Nodes,
        os::Os, runtime,
    },
    capability::Capabilities,
    host_layout::KUBELET_CONF,
    inputs::{Inputs, Scope},
};

/// From a cluster, or what is left of one, back to the hosts as they were. For the hosts that hold something of kk's.
///
/// All hosts at once: no step needs the API or a quorum of etcd, because all of it goes. User data (`/var/openebs`,
/// `/var/lib/rook`, volumes elsewhere) and the host's own packet filter rules stay.
pub(crate) fn capabilities(spec: &Spec) -> Capabilities {
    vec![
        &Kubelet,
        runtime::capability(spec),
        &Etcd,
        &KubeProxy,
        network::capability(spec),
        &Nodes,
        &Os,
        &Kubeconfig,
    ]
}

pub(crate) fn pipeline(inputs: &Inputs) -> Pipeline {
    let modules = capabilities(inputs.spec)
        .iter()
        .map(|capability| Module::new(capability.name(), capability.remove(inputs)))
        .collect();
    Pipeline { name: "delete cluster".to_owned(), modules }
}

/// The hosts with something that kk made. It is recorded before it is made.
pub(crate) fn scope(inputs: &Inputs) -> Scope {
    let stays = |entry: &Entry| {
        !inputs.options.remove_runtime && inputs.requirements.stays.iter().any(|stays| stays.matches(entry))
    };
    let holds = |(_, facts): &(&Host, &Facts)| facts.owned.entries().iter().any(|entry| !stays(entry));
    Scope::Hosts(inputs.hosts().into_iter().filter(holds).map(|(host, _)| host.name.clone()).collect())
}

/// Refuses hosts with a cluster that somebody else made: a wrong address in the file must not end it.
pub(crate) fn check(inputs: &Inputs) -> Result<(), BuildError> {
    let is_foreign = |(host, facts): (&Host, &Facts)| {
        let holds = facts.files.contains_key(KUBELET_CONF)
            || facts.units.get("kubelet.service").is_some_and(|unit| unit.active);
        (holds && !facts.owns("/etc/systemd/system/kubelet.service")).then(|| host.name.clone())
    };
    let of_file = inputs.spec.hosts.iter().filter_map(|host| Some((host, inputs.facts(host)?)));
    let foreign: Vec<String> = of_file.filter_map(is_foreign).collect();
    if foreign.is_empty() {
        return Ok(());
    }
    Err(BuildError::Foreign {
        what: format!("on {} is a cluster that kk did not make; nothing is removed", foreign.join(", ")),
        hint: "correct the file; or run `kubeadm reset` there, when that cluster is to go".to_owned(),
    })
}
