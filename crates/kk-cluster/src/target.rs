//! Everything that modules are built from: what the user wants, what the hosts are, and the means of this machine.

use std::{collections::BTreeMap, path::PathBuf};

use kk_artifact::{Artifact, Component, LocalFile, Versions};
use kk_config::{Arch, Host, Spec};
use kk_engine::Facts;

use crate::{
    cluster_state::ClusterState, images::Images, kubeadm::Token, templates::Templates, vault::Vault,
};

/// Choices of one run that are not in the file.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Leave the pulling of images to kubeadm and the kubelet.
    pub skip_pull_images: bool,
}

/// Programs by component and architecture. The files are known only when they were fetched by an earlier run.
pub(crate) type Programs = BTreeMap<(Component, Arch), (Artifact, Option<Vec<LocalFile>>)>;

/// What a cluster's modules are built from. Read-only; the pipeline made from it is data.
pub(crate) struct Target<'a> {
    /// What the user wants.
    pub spec: &'a Spec,
    /// What the hosts are, by name.
    pub facts: &'a BTreeMap<String, Facts>,
    /// What the API of the cluster says.
    pub state: ClusterState,
    /// Versions of all components.
    pub versions: Versions,
    /// Images of these versions.
    pub images: Images,
    /// Programs for the architectures of the hosts.
    pub programs: Programs,
    /// Certificates of etcd.
    pub vault: std::sync::Arc<Vault>,
    /// Files to render.
    pub templates: Templates,
    /// Choices of this run.
    pub options: Options,
    /// Lets nodes in, in this run.
    pub token: Token,
    /// `kubekey/<cluster>` on this machine.
    pub folder: PathBuf,
    /// Downloads.
    pub store: std::sync::Arc<kk_artifact::Store>,
}

impl Target<'_> {
    /// What a host is. Every host of the spec was probed before anything is built.
    pub(crate) fn facts(&self, host: &Host) -> &Facts {
        &self.facts[&host.name]
    }

    /// The architecture of a host.
    pub(crate) fn arch(&self, host: &Host) -> Arch {
        host.arch.or_else(|| Arch::from_name(&self.facts(host).arch)).unwrap_or(Arch::Amd64)
    }

    /// Whether any node is so.
    pub(crate) fn any_node(&self, is: impl Fn(&Facts) -> bool) -> bool {
        self.spec.nodes().iter().any(|host| is(self.facts(host)))
    }

    /// `domain:port` of the API.
    pub(crate) fn endpoint(&self) -> String {
        let endpoint = &self.spec.control_plane_endpoint;
        format!("{}:{}", endpoint.domain, endpoint.port)
    }

    /// Whether systemd manages the cgroups of pods. One answer for the cluster, because the kubelet's configuration is
    /// one for all nodes: a single host that cannot decides.
    pub(crate) fn systemd_cgroups(&self) -> bool {
        !self.any_node(|facts| !facts.systemd_cgroups)
    }

    /// Whether the first control plane went through `kubeadm init` to its end.
    pub(crate) fn is_initialised(&self) -> bool {
        self.state.is_initialised()
    }

    /// Whether a node has joined: it holds credentials of this cluster. One that was killed or deleted in between may
    /// not be in the API's list; its kubelet registers it again.
    pub(crate) fn has_joined(&self, host: &Host) -> bool {
        let ca =
            |host: &Host| self.facts(host).files.get("/etc/kubernetes/pki/ca.crt").map(|file| &file.sha256);
        self.facts(host).files.contains_key("/etc/kubernetes/kubelet.conf")
            && ca(host).is_some()
            && ca(host) == ca(self.spec.first_control_plane())
    }

    /// Whether the API lists the node.
    pub(crate) fn is_registered(&self, host: &Host) -> bool {
        self.state.nodes.contains_key(&host.name)
    }
}
