//! The modules: one folder a capability, one file a task, the file's name the task's.

pub(crate) use containerd::{basic_auth, check_registries};

pub(crate) mod addons;
pub(crate) mod binaries;
pub(crate) mod containerd;
pub(crate) mod control_plane;
pub(crate) mod etcd;
pub(crate) mod images;
pub(crate) mod joined;
pub(crate) mod kubeconfig;
pub(crate) mod kubelet;
pub(crate) mod nodes;
pub(crate) mod os;
pub(crate) mod removal;
pub(crate) mod verify;
pub(crate) mod workers;

use kk_config::{ControlPlaneEndpoint, Host, Role, Spec};
use kk_engine::Slot;

use crate::Target;

/// Names of the slots by which lanes wait for each other.
pub(crate) mod slots {
    use super::Slot;

    /// What a joining node needs to trust the cluster: the PEM text of its CA.
    pub(crate) fn cluster_ca() -> Slot<String> {
        Slot::new("cluster_ca")
    }

    /// The runtime's and etcd's programs are on the host.
    pub(crate) fn runtime_programs(host: &str) -> Slot<()> {
        Slot::of_host("runtime_programs", host)
    }

    /// kubeadm and the kubelet are on the host.
    pub(crate) fn kube_programs(host: &str) -> Slot<()> {
        Slot::of_host("kube_programs", host)
    }

    /// kubectl and the CNI plugins are on the host.
    pub(crate) fn node_tools(host: &str) -> Slot<()> {
        Slot::of_host("node_tools", host)
    }

    /// containerd answers.
    pub(crate) fn runtime(host: &str) -> Slot<()> {
        Slot::of_host("runtime", host)
    }

    /// Images that static pods need are on the host.
    pub(crate) fn control_plane_images(host: &str) -> Slot<()> {
        Slot::of_host("control_plane_images", host)
    }

    /// Images that every node needs to become ready are on the host.
    pub(crate) fn node_images(host: &str) -> Slot<()> {
        Slot::of_host("node_images", host)
    }

    /// Images of add-ons that may run anywhere are on the host.
    pub(crate) fn addon_images(host: &str) -> Slot<()> {
        Slot::of_host("addon_images", host)
    }

    /// The member of this host is healthy, and with it the etcd cluster.
    pub(crate) fn etcd_healthy(host: &str) -> Slot<()> {
        Slot::of_host("etcd_healthy", host)
    }

    /// The API of the first control plane answers, and nodes may join.
    pub(crate) fn initialised() -> Slot<()> {
        Slot::new("initialised")
    }

    /// The settings that this run wants are in the cluster.
    pub(crate) fn settings_published() -> Slot<()> {
        Slot::new("settings_published")
    }

    /// All nodes are registered, and their kubelets had time to read the Services.
    pub(crate) fn nodes_take_pods() -> Slot<()> {
        Slot::new("nodes_take_pods")
    }

    /// The node has its credentials and runs its kubelet.
    pub(crate) fn joined(host: &str) -> Slot<()> {
        Slot::of_host("joined", host)
    }
}

/// What a script needs to speak to the API as the administrator. The cache of kubectl goes with the script's folder.
pub(crate) const KUBECTL: &str = "export KUBECONFIG=/etc/kubernetes/admin.conf KUBECACHEDIR=$PWD/cache\n";

/// Folder of what this program writes down about the cluster on its nodes.
pub(crate) const NOTES: &str = "/etc/kubernetes/kubekey";

/// Removes kubeadm's copies of what it replaced: of a run that was killed, or of settings that are noted elsewhere.
pub(crate) const DROP_COPIES: &str = "rm -rf /etc/kubernetes/tmp\n";

/// The TCP ports that programs of this host listen on, and which program that is.
pub(crate) fn ports(spec: &Spec, host: &Host) -> Vec<(u16, &'static str)> {
    let mut ports = Vec::new();
    if host.has_role(&Role::Etcd) {
        ports.extend([(spec.etcd.port, "etcd"), (spec.etcd.peer_port, "etcd")]);
    }
    if host.has_role(&Role::ControlPlane) {
        ports.extend([
            (ControlPlaneEndpoint::API_SERVER_PORT, "kube-apiserver"),
            (10257, "kube-controller-manager"),
            (10259, "kube-scheduler"),
        ]);
    }
    if host.is_node() {
        ports.extend([(10248, "kubelet"), (10250, "kubelet"), (10256, "kube-proxy")]);
    }
    ports
}

/// The nodes that are to join in this run, beside the first control plane.
pub(crate) fn joining<'a>(target: &Target<'a>) -> Vec<&'a Host> {
    let first = &target.spec.first_control_plane().name;
    target.spec.nodes().into_iter().filter(|host| host.name != *first && !target.has_joined(host)).collect()
}
