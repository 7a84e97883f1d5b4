//! `kk create cluster`.

use kk_config::Spec;
use kk_engine::{Module, Pipeline};

use crate::{
    BuildError,
    capabilities::{
        control_plane::ControlPlane, dns::Dns, etcd::Etcd, images::Images, kube_proxy::KubeProxy,
        kubeconfig::Kubeconfig, kubelet::Kubelet, manifests::Manifests, network, nodes::Nodes, os::Os,
        programs::Programs, runtime, verify::Verify,
    },
    capability::Capabilities,
    inputs::Inputs,
};

/// From bare hosts to a cluster that works; on a cluster that is there, whatever is missing or changed. For all hosts.
///
/// Settings are written while programs travel in the background; a lane first waits for them where it starts the runtime.
pub(crate) fn capabilities(spec: &Spec) -> Capabilities {
    vec![
        &Os,
        &Programs,
        &Etcd,
        &Kubelet,
        runtime::capability(spec),
        &Images,
        &ControlPlane,
        &Nodes,
        &KubeProxy,
        network::capability(spec),
        &Dns,
        &Manifests,
        &Kubeconfig,
        &Verify,
    ]
}

pub(crate) fn pipeline(inputs: &Inputs) -> Result<Pipeline, BuildError> {
    let module = |capability: &&'static dyn crate::capability::Capability| match capability.skipped(inputs) {
        Some(why) => Ok(Module::skipped(capability.name(), why)),
        None => Ok(Module::new(capability.name(), capability.install(inputs)?)),
    };
    let modules: Result<Vec<Module>, BuildError> = capabilities(inputs.spec).iter().map(module).collect();
    Ok(Pipeline { name: "create cluster".to_owned(), modules: modules? })
}
