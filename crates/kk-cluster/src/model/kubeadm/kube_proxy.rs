//! Configuration of kube-proxy.

use kk_config::ProxyMode;
use serde_json::{Value, json};

use super::replace_top_level;
use crate::model::cluster::Cluster;

pub(super) fn kube_proxy_configuration(cluster: &Cluster) -> Value {
    let (network, kubernetes) = (&cluster.spec.network, &cluster.spec.kubernetes);
    let mut document = json!({
        "apiVersion": "kubeproxy.config.k8s.io/v1alpha1",
        "kind": "KubeProxyConfiguration",
        "clusterCIDR": network.pod_subnet(),
        "mode": kubernetes.proxy_mode.as_str(),
        // kube-proxy also reads this section in ipvs mode; in nftables mode it reads its own section (Kubernetes,
        // pkg/proxy/apis/config/v1alpha1/conversion.go).
        "iptables": {"masqueradeAll": kubernetes.masquerade_all, "masqueradeBit": 14, "minSyncPeriod": "0s", "syncPeriod": "30s"},
    });
    if kubernetes.proxy_mode == ProxyMode::Nftables {
        document["nftables"] = json!({"masqueradeAll": kubernetes.masquerade_all});
    }
    // In this mode, kube-proxy removes addresses that belong to no Service.
    let address = cluster.endpoint().virtual_address().filter(|_| kubernetes.proxy_mode == ProxyMode::Ipvs);
    if let Some(address) = address {
        document["ipvs"] = json!({"excludeCIDRs": [format!("{address}/32")]});
    }
    if !kubernetes.feature_gates.is_empty() {
        document["featureGates"] = json!(kubernetes.feature_gates);
    }
    replace_top_level(&mut document, &kubernetes.kube_proxy_configuration);
    document
}
