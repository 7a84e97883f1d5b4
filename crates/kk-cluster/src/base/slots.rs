//! Slots, by which lanes wait for each other. A slot without a value is only a key.

use kk_artifact::{Component, LocalFile};
use kk_config::Arch;
use kk_engine::{Slot, SlotKey};

use crate::base::shared_files::SharedFiles;

fn cluster(name: &str) -> SlotKey {
    Slot::<()>::new(name).key()
}

fn host(name: &str, host: &str) -> SlotKey {
    Slot::<()>::of_host(name, host).key()
}

/// The verified files of a component for an architecture, on the control machine.
pub(crate) fn fetched_slot(component: Component, arch: Arch) -> Slot<Vec<LocalFile>> {
    Slot::new(&format!("program {} {}", component.name(), arch.as_str()))
}

/// A snapshot on a host of etcd.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Taken {
    /// Absolute path.
    pub(crate) path: String,
    pub(crate) sha256: String,
    pub(crate) bytes: u64,
    /// Revision of etcd.
    pub(crate) revision: u64,
}

/// A snapshot of etcd that was just taken.
pub(crate) fn snapshot_slot() -> Slot<Taken> {
    Slot::new("snapshot")
}

/// The snapshot for a restore is on the host of a member.
pub(crate) fn snapshot_sent_slot(name: &str) -> SlotKey {
    host("snapshot_sent", name)
}

/// For a restore: no API server serves the previous state.
pub(crate) fn api_server_stopped_slot(name: &str) -> SlotKey {
    host("api_server_stopped", name)
}

/// For a restore: the member of this host is stopped.
pub(crate) fn member_stopped_slot(name: &str) -> SlotKey {
    host("member_stopped", name)
}

/// The member has the data of the snapshot.
pub(crate) fn member_restored_slot(name: &str) -> SlotKey {
    host("member_restored", name)
}

/// After a restore: the API server of this host is started.
pub(crate) fn api_server_started_slot(name: &str) -> SlotKey {
    host("api_server_started", name)
}

/// The CAs of a round of a rotation are published in all namespaces.
pub(crate) fn ca_published_slot() -> SlotKey {
    cluster("ca_published")
}

/// All workloads that a rotation restarts trust both CAs.
pub(crate) fn workloads_restarted_slot() -> SlotKey {
    cluster("workloads_restarted")
}

/// The control machine has saved the new CA of etcd as the cluster's CA.
pub(crate) fn rotation_saved_slot() -> SlotKey {
    cluster("rotation_saved")
}

/// The rotation has ended on the host.
pub(crate) fn rotation_ended_slot(name: &str) -> SlotKey {
    host("rotation_ended", name)
}

/// The PEM text of the cluster's CA, by which a joining node trusts the cluster.
pub(crate) fn cluster_ca_slot() -> Slot<String> {
    Slot::new("cluster_ca")
}

/// The files that kubeadm requires on every control plane (its documentation, "Manual certificate distribution").
pub(crate) fn cluster_certificates_slot() -> Slot<SharedFiles> {
    Slot::new("cluster_certificates")
}

/// Files that control planes share in addition to the keys of CAs, like [`cluster_certificates_slot`], for control planes that
/// lost some of them.
pub(crate) fn shared_files_slot() -> Slot<SharedFiles> {
    Slot::new("shared_files")
}

/// The binaries of the runtime and of etcd are on the host.
pub(crate) fn runtime_programs_slot(name: &str) -> SlotKey {
    host("runtime_programs", name)
}

/// kubeadm and the kubelet are on the host.
pub(crate) fn kube_programs_slot(name: &str) -> SlotKey {
    host("kube_programs", name)
}

/// kubectl and the CNI plugins are on the host.
pub(crate) fn node_tools_slot(name: &str) -> SlotKey {
    host("node_tools", name)
}

/// The runtime answers.
pub(crate) fn runtime_slot(name: &str) -> SlotKey {
    host("runtime", name)
}

/// Images that static pods need are on the host.
pub(crate) fn control_plane_images_slot(name: &str) -> SlotKey {
    host("control_plane_images", name)
}

/// Images that every node needs to become ready are on the host.
pub(crate) fn node_images_slot(name: &str) -> SlotKey {
    host("node_images", name)
}

/// Images that may run on any node are on the host.
pub(crate) fn addon_images_slot(name: &str) -> SlotKey {
    host("addon_images", name)
}

/// Images that the user has added to a bundle are on the host.
pub(crate) fn own_images_slot(name: &str) -> SlotKey {
    host("own_images", name)
}

/// etcd's certificates are on the control machine's disk: keys that a host has must not be lost with this process.
pub(crate) fn etcd_certificates_slot() -> SlotKey {
    cluster("etcd_certificates")
}

/// The files that etcd reads at its start are on the host.
pub(crate) fn etcd_configured_slot(name: &str) -> SlotKey {
    host("etcd_configured", name)
}

/// The member of this host lost its data, and was removed from the list of members.
pub(crate) fn lost_member_removed_slot(name: &str) -> SlotKey {
    host("lost_member_removed", name)
}

/// The member of this host and the etcd cluster are healthy.
pub(crate) fn etcd_healthy_slot(name: &str) -> SlotKey {
    host("etcd_healthy", name)
}

/// The API answers, and nodes may join.
pub(crate) fn initialised_slot() -> SlotKey {
    cluster("initialised")
}

/// The settings that this run wants are published in the cluster.
pub(crate) fn settings_published_slot() -> SlotKey {
    cluster("settings_published")
}

/// An API server that this run changes works with its changes. The slot belongs to the cluster, not to the host: nodes join
/// through this API server even if the command does not change its host.
pub(crate) fn settings_applied_slot(name: &str) -> SlotKey {
    cluster(&format!("settings_applied({name})"))
}

/// The node has its credentials and runs its kubelet.
pub(crate) fn joined_slot(name: &str) -> SlotKey {
    host("joined", name)
}

/// The changed settings of a program work on the first host of a rollout.
pub(crate) fn works_on_first_slot(program: &str) -> SlotKey {
    cluster(&format!("works_on_first({program})"))
}

/// The kubelet of a node that has joined works, and has reported to the API.
pub(crate) fn kubelet_works_slot(name: &str) -> SlotKey {
    host("kubelet_works", name)
}

/// The turn of a node in an upgrade is marked on its host.
pub(crate) fn turn_begun_slot(name: &str) -> SlotKey {
    host("turn_begun", name)
}

/// The node accepts pods again.
pub(crate) fn turn_ended_slot(name: &str) -> SlotKey {
    host("turn_ended", name)
}

/// A node that leaves or is upgraded is drained: no pods that could move are left on it.
pub(crate) fn drained_slot(name: &str) -> SlotKey {
    host("drained", name)
}

/// The etcd member of a host that leaves is removed from the list.
pub(crate) fn member_removed_slot(name: &str) -> SlotKey {
    host("member_removed", name)
}

/// The cluster no longer depends on the host.
pub(crate) fn left_slot(name: &str) -> SlotKey {
    host("left", name)
}

/// Everything on a node whose address changed works with the new address.
pub(crate) fn moved_slot(name: &str) -> SlotKey {
    host("moved", name)
}

/// On the node, the name of the API resolves to the address that the file specifies.
pub(crate) fn api_name_slot(name: &str) -> SlotKey {
    host("api_name", name)
}

/// The API lists all nodes.
pub(crate) fn nodes_registered_slot() -> SlotKey {
    cluster("nodes_registered")
}

/// Nodes have the labels and taints of the file.
pub(crate) fn labels_set_slot() -> SlotKey {
    cluster("labels_set")
}

/// All nodes are registered, and their kubelets had time to read the Services.
pub(crate) fn nodes_take_pods_slot() -> SlotKey {
    cluster("nodes_take_pods")
}

/// The pod range of a node that registers again is removed.
pub(crate) fn range_forgotten_slot(name: &str) -> SlotKey {
    host("range_forgotten", name)
}

/// The network plugin was restarted on nodes that lost the files that it writes.
pub(crate) fn plugin_restarted_slot() -> SlotKey {
    cluster("plugin_restarted")
}

/// kube-proxy was restarted on a node on which Services do not answer.
pub(crate) fn kube_proxy_restarted_slot(name: &str) -> SlotKey {
    host("kube_proxy_restarted", name)
}

/// Services answer again on a node.
pub(crate) fn services_back_slot(name: &str) -> SlotKey {
    host("services_back", name)
}

/// A node that had lost its network is Ready again, as its kubelet reports.
pub(crate) fn network_back_slot(name: &str) -> SlotKey {
    host("network_back", name)
}

/// An addon of the phase `network` is installed.
pub(crate) fn network_addon_slot(name: &str) -> SlotKey {
    cluster(&format!("network_addon({name})"))
}

/// All manifests are applied.
pub(crate) fn manifests_applied_slot() -> SlotKey {
    cluster("manifests_applied")
}

/// The image of ks-installer from the control machine is on the host.
pub(crate) fn installer_image_slot(name: &str) -> SlotKey {
    host("installer_image", name)
}

/// The configuration for ks-installer is in the API.
pub(crate) fn installer_applied_slot() -> SlotKey {
    cluster("installer_applied")
}

/// All components of KubeSphere are ready.
pub(crate) fn kubesphere_ready_slot() -> SlotKey {
    cluster("kubesphere_ready")
}

/// KubeSphere is removed, or cannot be removed.
pub(crate) fn kubesphere_removed_slot() -> SlotKey {
    cluster("kubesphere_removed")
}

/// The addresses at which pods answer: lines of a name, a tab, and a URL.
pub(crate) fn pod_addresses_slot() -> Slot<String> {
    Slot::new("pod_addresses")
}

/// The node has queried these addresses.
pub(crate) fn pods_asked_slot(name: &str) -> SlotKey {
    host("pods_asked", name)
}

/// The control machine has the certificates of the registry.
pub(crate) fn registry_certificates_slot() -> SlotKey {
    cluster("registry_certificates")
}

/// The unit of the registry runs.
pub(crate) fn registry_started_slot() -> SlotKey {
    cluster("registry_started")
}

/// The host of the registry no longer has a registry.
pub(crate) fn registry_removed_slot() -> SlotKey {
    cluster("registry_removed")
}

/// The host is restored to its state before the cluster.
pub(crate) fn host_restored_slot(name: &str) -> SlotKey {
    host("host_restored", name)
}
