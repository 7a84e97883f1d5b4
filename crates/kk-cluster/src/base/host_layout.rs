//! Paths on hosts that several capabilities share, and the words with which scripts speak to the API.

use kk_engine::Facts;

/// Directory of etcd's certificates and keys; the same as KubeKey's.
pub(crate) const ETCD_CERTS: &str = "/etc/ssl/etcd/ssl";
/// Where every control plane keeps its own client certificate for etcd. One path for all, because kubeadm has one
/// configuration for all; the keys behind it differ.
pub(crate) const ETCD_CA: &str = "/etc/ssl/etcd/ssl/ca.pem";
/// The key of etcd's CA, on etcd's hosts only.
pub(crate) const ETCD_CA_KEY: &str = "/etc/ssl/etcd/ssl/ca-key.pem";
/// The client certificate for etcd.
pub(crate) const ETCD_CERT: &str = "/etc/ssl/etcd/ssl/apiserver-etcd-client.pem";
/// The key of the client certificate for etcd.
pub(crate) const ETCD_KEY: &str = "/etc/ssl/etcd/ssl/apiserver-etcd-client-key.pem";

/// What etcd is started with. In the record of a host: its etcd is kk's.
pub(crate) const ETCD_ENVIRONMENT: &str = "/etc/etcd.env";

/// The CA of the cluster.
pub(crate) const CLUSTER_CA: &str = "/etc/kubernetes/pki/ca.crt";
/// A node's credentials: it has joined.
pub(crate) const KUBELET_CONF: &str = "/etc/kubernetes/kubelet.conf";
/// The administrator's kubeconfig.
pub(crate) const ADMIN_CONF: &str = "/etc/kubernetes/admin.conf";

/// Directory of what kk notes about the cluster on its nodes.
pub(crate) const NOTES: &str = "/etc/kubernetes/kubekey";
/// A join of this node has begun, and has not been seen through to its end.
pub(crate) const JOINING: &str = "/etc/kubernetes/kubekey/joining";

/// The node was cordoned for its turn in an upgrade, and the turn has not ended.
pub(crate) const UPGRADING: &str = "/etc/kubernetes/kubekey/upgrading";

/// The node has got another address, and what works with the one of before may still run.
pub(crate) const MOVING: &str = "/etc/kubernetes/kubekey/moving";

/// A restore of etcd has begun on this host, and has not ended.
pub(crate) const RESTORING: &str = "/etc/etcd-restoring";

/// What a script needs to speak to the API as the administrator. kubectl's cache goes with the script's directory.
pub(crate) const KUBECTL: &str = "export KUBECONFIG=/etc/kubernetes/admin.conf KUBECACHEDIR=$PWD/cache\n";

/// Removes kubeadm's copies of what it replaced: of a run that was killed, or of settings that are noted elsewhere.
pub(crate) const DROP_COPIES: &str = "rm -rf /etc/kubernetes/tmp\n";

/// The unit by which a record shows that the cluster of a host is kk's.
pub(crate) const KUBELET_UNIT: &str = "/etc/systemd/system/kubelet.service";

/// First line of the block in /etc/hosts; KubeKey's own, so that a cluster made by it is taken over cleanly.
pub(crate) const HOSTS_BEGIN: &str = "# kubekey hosts BEGIN";
/// Last line of that block.
pub(crate) const HOSTS_END: &str = "# kubekey hosts END";

/// Whether the file of a unit of kk is a link to /dev/null. What replaces it unmasks the unit.
pub(crate) fn is_masked(facts: &Facts, unit: &str) -> bool {
    facts
        .files
        .get(&format!("/etc/systemd/system/{unit}.service"))
        .is_some_and(|file| file.link == "/dev/null")
}
