//! The edits as data.

use serde_json::{Value, json};

use crate::site::host_entry;

/// An edit that a running cluster cannot take.
pub(super) struct Refused {
    pub(super) name: &'static str,
    pub(super) edit: fn(&mut Value),
    /// Words in the refusal.
    pub(super) says: &'static [&'static str],
}

/// An edit that is rolled out.
pub(super) struct Taken {
    pub(super) name: &'static str,
    pub(super) edit: fn(&mut Value),
    /// Succeeds on each host that has it, and fails on the control plane without it.
    pub(super) seen: &'static str,
}

pub(super) const REFUSED: &[Refused] = &[
    Refused {
        name: "etcd-data-dir",
        edit: |cluster| cluster["spec"]["etcd"]["dataDir"] = json!("/srv/etcd"),
        says: &["dataDir", "/var/lib/etcd"],
    },
    Refused {
        name: "etcd-peer-port",
        edit: |cluster| cluster["spec"]["etcd"]["peerPort"] = json!(2390),
        says: &["peerPort"],
    },
    Refused {
        name: "containerd-data-dir",
        edit: |cluster| cluster["spec"]["registry"]["containerdDataDir"] = json!("/srv/containerd"),
        says: &["containerdDataDir", "/var/lib/containerd"],
    },
    Refused {
        name: "pods-cidr",
        edit: |cluster| cluster["spec"]["network"]["kubePodsCIDR"] = json!("10.244.0.0/16"),
        says: &["kubePodsCIDR", "10.233.64.0/18"],
    },
    Refused {
        name: "service-cidr",
        edit: |cluster| cluster["spec"]["network"]["kubeServiceCIDR"] = json!("10.96.0.0/16"),
        says: &["kubeServiceCIDR", "10.233.0.0/18"],
    },
    Refused {
        name: "dns-domain",
        edit: |cluster| cluster["spec"]["kubernetes"]["dnsDomain"] = json!("other.local"),
        says: &["dnsDomain"],
    },
    Refused {
        name: "endpoint",
        edit: |cluster| cluster["spec"]["controlPlaneEndpoint"]["domain"] = json!("api.other.local"),
        says: &["controlPlaneEndpoint", "api.other.local"],
    },
    Refused {
        name: "host-name",
        edit: |cluster| {
            host_entry(cluster, "node3")["name"] = json!("worker9");
            let groups = &mut cluster["spec"]["roleGroups"];
            groups["etcd"] = json!(["node1", "node2", "worker9"]);
            groups["worker"] = json!(["node2", "worker9"]);
        },
        says: &["node3", "worker9"],
    },
    Refused {
        name: "etcd-member-less",
        edit: |cluster| cluster["spec"]["roleGroups"]["etcd"] = json!(["node1"]),
        says: &["etcd"],
    },
    Refused {
        name: "another-control-plane",
        edit: |cluster| {
            cluster["spec"]["roleGroups"]["control-plane"] = json!(["node2"]);
            cluster["spec"]["roleGroups"]["worker"] = json!(["node1", "node3"]);
        },
        says: &["node1", "control plane"],
    },
];

pub(super) const TAKEN: &[Taken] = &[
    Taken {
        name: "max-pods",
        edit: |cluster| cluster["spec"]["kubernetes"]["maxPods"] = json!(99),
        seen: "grep -q 'maxPods: 99' /var/lib/kubelet/config.yaml",
    },
    Taken {
        name: "proxy-mode",
        edit: |cluster| cluster["spec"]["kubernetes"]["proxyMode"] = json!("nftables"),
        seen: "nft list table ip kube-proxy >/dev/null 2>&1",
    },
    Taken {
        name: "api-server-flag",
        edit: |cluster| cluster["spec"]["kubernetes"]["apiserverArgs"] = json!(["event-ttl=2h"]),
        seen: "[ ! -e /etc/kubernetes/manifests/kube-apiserver.yaml ] || grep -q event-ttl=2h /etc/kubernetes/manifests/kube-apiserver.yaml",
    },
];
