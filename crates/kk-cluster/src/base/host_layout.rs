//! Paths on hosts that several capabilities share, and the commands by which scripts use the API.

use kk_engine::Facts;

/// Directory of etcd's certificates and keys; the same as KubeKey's.
pub(crate) const ETCD_CERTS: &str = "/etc/ssl/etcd/ssl";
/// The CA of etcd.
pub(crate) const ETCD_CA: &str = "/etc/ssl/etcd/ssl/ca.pem";
/// The key of etcd's CA, on etcd's hosts only.
pub(crate) const ETCD_CA_KEY: &str = "/etc/ssl/etcd/ssl/ca-key.pem";
/// The client certificate for etcd. Each control plane has its own, at the same path, because kubeadm has one configuration for
/// all.
pub(crate) const ETCD_CERT: &str = "/etc/ssl/etcd/ssl/apiserver-etcd-client.pem";
/// The key of the client certificate for etcd.
pub(crate) const ETCD_KEY: &str = "/etc/ssl/etcd/ssl/apiserver-etcd-client-key.pem";

/// Environment file of etcd. If the ownership record of a host contains it, kk installed the etcd of that host.
pub(crate) const ETCD_ENVIRONMENT: &str = "/etc/etcd.env";

/// The CA of the cluster.
pub(crate) const CLUSTER_CA: &str = "/etc/kubernetes/pki/ca.crt";
/// A node's credentials. If the file exists, the node has joined.
pub(crate) const KUBELET_CONF: &str = "/etc/kubernetes/kubelet.conf";
/// The administrator's kubeconfig.
pub(crate) const ADMIN_CONF: &str = "/etc/kubernetes/admin.conf";

/// Directory of kk's notes about the cluster, on its nodes.
pub(crate) const NOTES: &str = "/etc/kubernetes/kubekey";
/// The cluster has addons of the phase `network`. The file is on the control plane that installed them.
pub(crate) const NETWORK_ADDONS: &str = "/etc/kubernetes/kubekey/network-addons";
/// A join of this node has begun and has not finished.
pub(crate) const JOINING: &str = "/etc/kubernetes/kubekey/joining";

/// The node was cordoned for its turn in an upgrade, and the turn has not ended.
pub(crate) const UPGRADING: &str = "/etc/kubernetes/kubekey/upgrading";

/// The address of the node has changed, and processes that use the previous address may still run.
pub(crate) const MOVING: &str = "/etc/kubernetes/kubekey/moving";

/// A restore of etcd has begun on this host and has not ended.
pub(crate) const RESTORING: &str = "/etc/etcd-restoring";

/// Environment for scripts that use the API as the administrator. kubectl's cache is removed with the script's directory.
pub(crate) const KUBECTL: &str = "export KUBECONFIG=/etc/kubernetes/admin.conf KUBECACHEDIR=$PWD/cache\n";

/// Removes kubeadm's copies of replaced files. A killed run left them, or their settings are noted elsewhere.
pub(crate) const DROP_COPIES: &str = "rm -rf /etc/kubernetes/tmp\n";

/// The unit that marks the cluster of a host as kk's in the ownership record.
pub(crate) const KUBELET_UNIT: &str = "/etc/systemd/system/kubelet.service";

/// First line of the block in /etc/hosts. It is KubeKey's own line, so that kk takes over KubeKey's block.
pub(crate) const HOSTS_BEGIN: &str = "# kubekey hosts BEGIN";
/// Last line of that block.
pub(crate) const HOSTS_END: &str = "# kubekey hosts END";

/// Whether a unit of kk is masked: its file is a link to /dev/null. The action that replaces the link unmasks the unit.
pub(crate) fn is_masked(facts: &Facts, unit: &str) -> bool {
    facts
        .files
        .get(&format!("/etc/systemd/system/{unit}.service"))
        .is_some_and(|file| file.link == "/dev/null")
}
