//! flannel: one daemon on each node, with networks from the nodes' pod ranges.

mod check;
pub(crate) mod links;
mod manifest;

use kk_artifact::Component;
use kk_config::{Host, NetworkPlugin, Spec, v1alpha2::FlannelBackend};
use kk_engine::{ProbeSpec, Task};

use super::{remove, restart::Agent};
use crate::{
    base::{
        error::BuildError,
        findings::Findings,
        requirements::{ImageStage, Manifest, Port, Ready, Workload},
    },
    model::{
        capability::{Capability, Stage},
        cluster::Cluster,
        inputs::Inputs,
    },
};

/// flannel with the backend that the file specifies.
pub(super) struct Flannel;

/// flannel on each node. After a boot, flannel itself writes the node's pod range below /run.
pub(super) const AGENT: Agent = Agent {
    plugin: "flannel",
    namespace: "kube-flannel",
    daemon_set: "kube-flannel-ds",
    selector: "app=flannel",
    writes: &["/etc/cni/net.d/10-flannel.conflist", "/opt/cni/bin/flannel"],
    forget: Some(
        "rm -f /run/flannel/subnet.env\n! ip link show cni0 >/dev/null 2>&1 || ip link delete cni0\n",
    ),
    mend: Some(include_str!("mend_bridge.sh")),
    broken: links::broken,
};

/// The backend that the file specifies.
fn backend(spec: &Spec) -> Option<FlannelBackend> {
    if let NetworkPlugin::Flannel(backend) = &spec.network.plugin { Some(*backend) } else { None }
}

impl Capability for Flannel {
    fn name(&self) -> &'static str {
        "network"
    }

    fn stage(&self) -> Stage {
        Stage::AddOns
    }

    fn images(&self, cluster: &Cluster, host: &Host) -> Vec<(ImageStage, String)> {
        if !host.is_node() {
            return Vec::new();
        }
        [Component::Flannel, Component::FlannelCniPlugin]
            .map(|component| cluster.images.of(component))
            .map(|image| (ImageStage::Node, image))
            .to_vec()
    }

    fn ports(&self, spec: &Spec, host: &Host) -> Vec<Port> {
        let vxlan = host.is_node() && backend(spec) == Some(FlannelBackend::Vxlan);
        if vxlan { vec![Port::udp(8472, "flannel vxlan")] } else { Vec::new() }
    }

    /// The bridge of pods, flannel's own links, and a link for each pod.
    fn interfaces(&self) -> &'static [&'static str] {
        &["cni0", "flannel*", "veth*"]
    }

    fn asks(&self, inputs: &Inputs, host: &Host, probe: &mut ProbeSpec) {
        super::check::asks(host, probe);
        AGENT.asks(probe);
        if host.is_node() {
            probe.ask(&links::question(inputs.spec));
        }
    }

    fn findings(&self, inputs: &Inputs, found: &mut Findings) {
        check::findings(inputs, found);
        AGENT.findings(inputs, found);
        links::findings(inputs, found);
    }

    fn manifests(&self, cluster: &Cluster) -> Result<Vec<Manifest>, BuildError> {
        Ok(vec![manifest::manifest(cluster)?])
    }

    fn ready(&self, _cluster: &Cluster) -> Vec<Ready> {
        vec![Ready::Workload(Workload {
            namespace: "kube-flannel",
            path: "daemonset/kube-flannel-ds",
            metrics: None,
        })]
    }

    fn install(&self, inputs: &Inputs) -> Result<Vec<Task>, BuildError> {
        Ok(AGENT.tasks(inputs))
    }

    fn remove(&self, inputs: &Inputs) -> Vec<Task> {
        vec![remove::task(inputs, "flannel", include_str!("remove_flannel.sh"))]
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use crate::testing;

    /// The ranges whose routes a delete removes, if flannel wrote this file.
    fn removed(written: Option<&str>) -> String {
        let directory = tempfile::tempdir().unwrap();
        let here = directory.path().display().to_string();
        fs::create_dir_all(directory.path().join("run/flannel")).unwrap();
        if let Some(text) = written {
            fs::write(directory.path().join("run/flannel/subnet.env"), text).unwrap();
        }
        testing::program(directory.path(), "ip", "case \"$*\" in *flush*) echo \"$*\" ;; *) exit 1 ;; esac");
        testing::program(directory.path(), "nft", "exit 0");
        let mut text = include_str!("remove_flannel.sh").to_owned();
        for path in ["/var/lib/cni", "/etc/cni", "/opt/cni", "/run/flannel"] {
            text = text.replace(path, &format!("{here}{path}"));
        }
        let library = "remove_chains() { :; }\nempty() { rm -rf \"$1\"; }\n";
        let output = testing::run_script(directory.path(), &format!("{library}{text}"));
        assert!(output.status.success() && !directory.path().join("run/flannel").exists());
        String::from_utf8(output.stdout).unwrap()
    }

    /// The file may now specify the network of the hosts.
    #[test]
    fn only_routes_of_the_network_that_flannel_had_go() {
        let written = "FLANNEL_NETWORK=10.233.64.0/18\nFLANNEL_SUBNET=10.233.65.1/24\nFLANNEL_MTU=1500\n";
        assert_eq!(removed(Some(written)), "route flush root 10.233.64.0/18\n");
        assert_eq!(removed(None), "");
    }
}
