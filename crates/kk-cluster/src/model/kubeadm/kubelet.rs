//! Configuration of the kubelet, the same for all nodes.

use serde_json::{Value, json};

use super::replace_top_level;
use crate::model::cluster::Cluster;

/// The kubelet's settings for all nodes.
/// The settings that are the same for all clusters, unless `kubeletConfiguration` of the file replaces them.
pub fn kubelet_defaults() -> Value {
    json!({
        "kubeReserved": {"cpu": "200m", "memory": "250Mi"},
        "systemReserved": {"cpu": "200m", "memory": "250Mi"},
        // If a configuration sets one threshold, the defaults of all others are disabled, so the thresholds of the disks are set
        // here, too.
        "evictionHard": {
            "memory.available": "5%", "pid.available": "10%",
            "nodefs.available": "10%", "nodefs.inodesFree": "5%",
            "imagefs.available": "15%", "imagefs.inodesFree": "5%",
        },
        "evictionSoft": {"memory.available": "10%"},
        "evictionSoftGracePeriod": {"memory.available": "2m"},
        "evictionMaxPodGracePeriod": 120,
        "evictionPressureTransitionPeriod": "30s",
        "containerLogMaxSize": "5Mi",
        "containerLogMaxFiles": 3,
    })
}

pub(super) fn kubelet_configuration(cluster: &Cluster) -> Value {
    let kubernetes = &cluster.spec.kubernetes;
    let mut document = json!({
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "clusterDNS": [cluster.spec.network.dns_service_address()],
        "clusterDomain": kubernetes.dns_domain,
        "maxPods": kubernetes.max_pods,
        "podPidsLimit": kubernetes.pod_pids_limit,
        "rotateCertificates": true,
        "cgroupDriver": if cluster.systemd_cgroups() { "systemd" } else { "cgroupfs" },
    });
    for (key, value) in kubelet_defaults().as_object().into_iter().flatten() {
        document[key] = value.clone();
    }
    if !kubernetes.feature_gates.is_empty() {
        document["featureGates"] = json!(kubernetes.feature_gates);
    }
    // Since 1.35 the kubelet refuses to start on cgroup v1 without this setting, which is never written for cgroup v2.
    if kubernetes.version.at_least(1, 35) && cluster.any_node(|facts| !facts.cgroup_v2) {
        document["failCgroupV1"] = json!(false);
    }
    if cluster.any_node(|facts| !facts.swaps.is_empty()) && cluster.spec.system.skip_configure_os {
        document["failSwapOn"] = json!(false);
    }
    replace_top_level(&mut document, &kubernetes.kubelet_configuration);
    document
}

#[cfg(test)]
mod tests {
    use super::kubelet_configuration;
    use crate::testing;

    /// The kubelet uses 0 for each threshold that a file with any threshold does not set.
    #[tokio::test]
    async fn every_threshold_of_eviction_is_set() {
        let spec = testing::sample("all-in-one.yaml");
        let directory = tempfile::tempdir().unwrap();
        let (session, fresh) = (testing::session(spec.clone(), directory.path()), testing::fresh(&spec));
        let document = kubelet_configuration(&session.create_inputs(&fresh).await.unwrap());
        let set = document["evictionHard"].as_object().unwrap();
        for signal in [
            "memory.available",
            "nodefs.available",
            "nodefs.inodesFree",
            "imagefs.available",
            "imagefs.inodesFree",
        ] {
            assert!(set.contains_key(signal), "{signal}");
        }
    }
}
