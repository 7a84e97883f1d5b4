//! The normalised [`Spec`]: the wanted cluster, in plain types with every default applied.
//!
//! A section that needs no other form than the one in which it is written is shared with [`crate::v1alpha2`].
//!
//! Only [`crate::load`] and [`Spec::all_in_one`] create a spec, so its users can rely on the checks: names are unique, every role
//! names a known host, there is a control plane, ranges are disjoint. It is read-only input for all other crates.

mod addon;
mod calico;
mod endpoint;
mod host;
mod image;
mod kubernetes;
mod kubesphere;
mod manifest;
mod network;
mod operating_system;
mod registry;
mod source;

pub use crate::v1alpha2::{Dns, Etcd, Registry, RegistryAuth, System};
pub use addon::{Addon, AddonChart};
pub use calico::{Calico, CalicoWorkload};
pub use endpoint::{Balancer, Bgp, ControlPlaneEndpoint, KubeVip};
pub use host::{Arch, Bastion, Host, PrivateKey, Role, Taint, TaintEffect};
pub use image::ImageName;
pub use kubernetes::{EncryptionAlgorithm, Kubernetes, ProxyMode};
pub use kubesphere::{InstallerImage, KubeSphere};
pub use manifest::Manifest;
pub use network::Network;
pub use operating_system::{OperatingSystem, has_dnf};
pub use registry::{Credentials, Download, OwnRegistry};
pub use source::{ChartSource, ManifestFile, ManifestSource};

use crate::Components;
use std::collections::BTreeMap;

/// A whole cluster.
#[derive(Debug, Clone, PartialEq)]
pub struct Spec {
    /// `metadata.name`: names the working directory on the control machine. A DNS label.
    pub name: String,
    /// The hosts that have a role, in the order of the file. Hosts without a role group are left out.
    pub hosts: Vec<Host>,
    /// The address of the API for nodes and users.
    pub control_plane_endpoint: ControlPlaneEndpoint,
    /// Settings of the operating system of each host.
    pub system: System,
    /// The etcd cluster, run by systemd on the hosts with [`Role::Etcd`].
    pub etcd: Etcd,
    /// Versions and settings of the Kubernetes components.
    pub kubernetes: Kubernetes,
    /// Address ranges and the network plugin.
    pub network: Network,
    /// Name resolution on hosts and in the cluster.
    pub dns: Dns,
    /// The sources of images.
    pub registry: Registry,
    /// The sources of binaries.
    pub download: Download,
    /// Versions of components other than Kubernetes, if the user pins them.
    pub components: Components,
    /// Charts and manifests that are installed once the cluster runs, in this order.
    pub addons: Vec<Addon>,
    /// KubeSphere, if it is requested.
    pub kubesphere: Option<KubeSphere>,
    /// Host names by role, in the order of the file's role groups.
    pub(crate) role_groups: BTreeMap<Role, Vec<String>>,
}

impl Spec {
    /// The host with this name.
    pub fn host(&self, name: &str) -> Option<&Host> {
        self.hosts.iter().find(|host| host.name == name)
    }

    /// The hosts with a role, in the order of its role group. Empty if no host has the role.
    pub fn with_role(&self, role: &Role) -> Vec<&Host> {
        self.role_groups.get(role).into_iter().flatten().filter_map(|name| self.host(name)).collect()
    }

    /// The etcd members, in the order of their role group.
    pub fn etcd_hosts(&self) -> Vec<&Host> {
        self.with_role(&Role::Etcd)
    }

    /// The control planes, in the order of their role group.
    pub fn control_planes(&self) -> Vec<&Host> {
        self.with_role(&Role::ControlPlane)
    }

    /// The control plane that runs `kubeadm init`: the first of its role group.
    pub fn first_control_plane(&self) -> &Host {
        self.control_planes().first().copied().expect("a spec without a control plane is refused")
    }

    /// The registry that kk runs for this cluster: on the first host of the group `registry`, unless a Harbor is requested.
    pub fn own_registry(&self) -> Option<OwnRegistry<'_>> {
        let host =
            self.with_role(&Role::Registry).into_iter().next().filter(|_| !self.registry.is_harbor())?;
        OwnRegistry::new(host, &self.registry)
    }

    /// The hosts that become Kubernetes nodes (control planes and workers), in the order of the file.
    pub fn nodes(&self) -> Vec<&Host> {
        self.hosts.iter().filter(|host| host.is_node()).collect()
    }
}
