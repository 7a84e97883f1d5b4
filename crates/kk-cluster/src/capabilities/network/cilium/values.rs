//! The values of kk for the chart. Values of the file override them.

use kk_artifact::Component;
use kk_config::Spec;
use serde_json::{Value, json};

use crate::model::cluster::Cluster;

/// Names of clusters are left out: Cilium refuses dots in them, and KubeKey's default has some.
pub(super) fn of(cluster: &Cluster) -> Value {
    let spec = cluster.spec;
    let (api_name, api_port) = cluster.endpoint().for_pods();
    let both_families = spec.network.pods_v6.is_some();
    json!({
        // The proxy runs in the agent: a DaemonSet of its own needs another image.
        "envoy": {"enabled": false},
        // By tag: a private registry may not have the digests in the chart.
        "image": {"override": cluster.images.of(Component::Cilium)},
        "ipam": {"mode": "kubernetes"},
        "ipv6": {"enabled": both_families},
        "k8s": {"requireIPv4PodCIDR": true, "requireIPv6PodCIDR": both_families},
        // Services do not work before Cilium does.
        "k8sServiceHost": api_name,
        "k8sServicePort": api_port,
        "kubeProxyReplacement": spec.kubernetes.disable_kube_proxy,
        "operator": {
            "image": {"override": cluster.images.of(Component::CiliumOperator)},
            "replicas": spec.nodes().len().min(2),
        },
    })
}

/// Whether the file sets how packets travel between nodes. The default is VXLAN at its usual port.
pub(super) fn changes_tunnel(spec: &Spec) -> bool {
    let values = &spec.network.cilium_values;
    ["routingMode", "tunnelPort", "tunnelProtocol"].iter().any(|key| values.contains_key(*key))
}
