//! Settings in the form of the notes on nodes, to be compared with the current settings of the file. Equal values result in equal
//! texts, whatever their order in the file is; no part of them differs between runs.

use kk_config::Host;
use serde_json::Value;

use super::{cluster_configuration, kube_proxy_configuration, kubelet_configuration};
use crate::{
    base::yaml::documents,
    model::{cluster::Cluster, kubeadm},
};

/// The settings of one control plane. They name no other control plane, so an additional one changes nothing here.
pub(crate) fn control_plane_documents(cluster: &Cluster, host: &Host) -> String {
    control_plane_documents_with(cluster, host, kubeadm::etcd_endpoints(cluster.spec))
}

/// The same with other members of etcd than the file specifies.
pub(crate) fn control_plane_documents_with(cluster: &Cluster, host: &Host, etcd: Vec<String>) -> String {
    let mut configuration = configuration(cluster, &[host]);
    configuration["etcd"]["external"]["endpoints"] = etcd.into();
    sort_sets(&mut configuration);
    sorted([configuration, kube_proxy_configuration(cluster)])
}

/// The settings from which kube-proxy's objects are made.
pub(crate) fn kube_proxy_documents(cluster: &Cluster) -> String {
    let mut configuration = configuration(cluster, &[]);
    // Settings that concern only the control plane are no reason to apply these objects again.
    if let Value::Object(fields) = &mut configuration {
        fields.retain(|name, _| !["etcd", "apiServer", "controllerManager", "scheduler"].contains(&&**name));
    }
    sorted([configuration, kube_proxy_configuration(cluster)])
}

/// The settings of the cluster, by which further control planes join.
pub(crate) fn cluster_document(cluster: &Cluster) -> String {
    sorted([configuration(cluster, &cluster.spec.control_planes())])
}

fn configuration(cluster: &Cluster, control_planes: &[&Host]) -> Value {
    let mut configuration = cluster_configuration(cluster, control_planes);
    sort_sets(&mut configuration);
    configuration
}

/// Sorts lists that are sets, whose order is irrelevant.
fn sort_sets(configuration: &mut Value) {
    for set in ["/etcd/external/endpoints", "/apiServer/certSANs"] {
        if let Some(Value::Array(values)) = configuration.pointer_mut(set) {
            values.sort_by_key(ToString::to_string);
        }
    }
}

/// The kubelet's settings for all nodes.
pub(crate) fn kubelet_document(cluster: &Cluster) -> String {
    sorted([kubelet_configuration(cluster)])
}

fn sorted<const N: usize>(mut values: [Value; N]) -> String {
    values.iter_mut().for_each(Value::sort_all_objects);
    documents(&values)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing;

    /// The notes for a file of three control planes with etcd.
    async fn notes(hosts: &str, kubernetes: &str) -> [String; 2] {
        let spec = testing::spec(&format!(
            "apiVersion: kubekey.kubesphere.io/v1alpha2\nkind: Cluster\nmetadata: {{name: t}}\nspec:\n  hosts:\n  \
             - {{name: a, address: 192.0.2.1}}\n  - {{name: b, address: 192.0.2.2}}\n  - {{name: c, address: 192.0.2.3}}\n  \
             roleGroups: {{etcd: {hosts}, control-plane: {hosts}, worker: [a]}}\n  \
             controlPlaneEndpoint: {{address: 192.0.2.9}}\n  kubernetes: {kubernetes}\n"
        ));
        let directory = tempfile::tempdir().unwrap();
        let (session, fresh) = (testing::session(spec.clone(), directory.path()), testing::fresh(&spec));
        let inputs = session.create_inputs(&fresh).await.unwrap();
        let host = &inputs.spec.hosts[0];
        [control_plane_documents(&inputs, host), kubelet_document(&inputs)]
    }

    #[tokio::test]
    async fn another_order_and_a_comment_are_no_change_and_another_value_is() {
        let kubelet =
            "evictionHard: {memory.available: 5%, nodefs.available: 10%}, imageGCHighThresholdPercent: 90";
        let turned =
            "imageGCHighThresholdPercent: 90, evictionHard: {nodefs.available: 10%, memory.available: 5%}";
        let settings = |kubelet: &str, proxy: &str| {
            format!(
                "{{maxPods: 90, kubeletConfiguration: {{{kubelet}}}, kubeProxyConfiguration: {{{proxy}}}}}"
            )
        };
        let before = notes("[a, b, c]", &settings(kubelet, "oomScoreAdj: -998, mode: ipvs")).await;
        let again =
            notes("[c, a, b]", &(settings(turned, "mode: ipvs, oomScoreAdj: -998") + " # A comment.")).await;
        assert_eq!(before, again);
        let other = notes("[a, b]", &settings(&kubelet.replace("5%", "6%"), "mode: ipvs")).await;
        assert!(before[0] != other[0] && before[1] != other[1]);
    }
}
