//! The manifest of flannel.

use kk_artifact::Component;
use kk_config::ProxyMode;
use serde_json::json;

use super::backend;
use crate::{
    base::{error::BuildError, requirements::Manifest},
    capabilities::manifests::from_template,
    model::cluster::Cluster,
};

pub(super) fn manifest(cluster: &Cluster) -> Result<Manifest, BuildError> {
    let network = &cluster.spec.network;
    let backend = backend(cluster.spec).map_or("", kk_config::v1alpha2::FlannelBackend::as_str);
    let is_vxlan = backend == kk_config::v1alpha2::FlannelBackend::Vxlan.as_str();
    let direct_routing = is_vxlan && network.flannel_direct_routing;
    let nftables = cluster.spec.kubernetes.proxy_mode == ProxyMode::Nftables;
    // Without direct routing, the sum is the same as in earlier versions of kk, so that no pod restarts.
    let direct = if direct_routing { " direct" } else { "" };
    let (api_name, api_port) = cluster.endpoint().for_pods();
    let values = json!({
        "flannel_tag": cluster.versions.of(Component::Flannel),
        "flannel_image": cluster.images.of(Component::Flannel),
        "cni_plugin_image": cluster.images.of(Component::FlannelCniPlugin),
        "pods": network.pods,
        "pods_v6": network.pods_v6,
        "nftables": nftables,
        "backend": backend,
        "direct_routing": direct_routing,
        // Not an address: the name resolves to another one while a host is down. Services do not work before the network.
        "api_name": api_name,
        "api_port": api_port,
        "config_sum": format!("{} {:?} {backend} {nftables}{direct}", network.pods, network.pods_v6),
    });
    from_template(cluster, "flannel", "network/flannel.yaml", &values)
}

#[cfg(test)]
mod tests {
    use kk_config::{NetworkPlugin, v1alpha2::FlannelBackend};

    use super::*;
    use crate::testing;

    async fn text(mode: ProxyMode) -> String {
        let mut spec = testing::sample("three-nodes.yaml");
        spec.kubernetes.proxy_mode = mode;
        let directory = tempfile::tempdir().unwrap();
        let (session, fresh) = (testing::session(spec.clone(), directory.path()), testing::fresh(&spec));
        manifest(&session.create_inputs(&fresh).await.unwrap()).unwrap().file
    }

    #[tokio::test]
    async fn flannel_travels_on_the_network_of_the_internal_addresses() {
        let text = text(ProxyMode::Iptables).await;
        assert!(text.contains("--iface=\"$NODE_IP\""), "{text}");
        assert!(
            text.contains("{name: NODE_IP, valueFrom: {fieldRef: {fieldPath: status.hostIP}}}"),
            "{text}"
        );
    }

    /// While the first control plane is down, its address does not answer, and the name resolves to another one.
    #[tokio::test]
    async fn flannel_asks_the_api_by_its_name() {
        let text = text(ProxyMode::Iptables).await;
        assert!(text.contains("{name: KUBERNETES_SERVICE_HOST, value: \"lb.kubesphere.local\"}"), "{text}");
    }

    /// The file of the node survives a restart of flannel, which may then not reach the API.
    #[tokio::test]
    async fn flannel_is_ready_when_it_has_written_the_file_of_its_node_since_its_start() {
        let text = text(ProxyMode::Iptables).await;
        let documents: Vec<serde_json::Value> = serde_saphyr::from_multiple(&text).unwrap();
        let set = documents.iter().find(|document| document["kind"] == "DaemonSet").unwrap();
        let container = &set["spec"]["template"]["spec"]["containers"][0];
        let start = container["args"][0].as_str().unwrap().lines().next().unwrap();
        let probe = container["startupProbe"]["exec"]["command"][2].as_str().unwrap();
        for (case, before, after, ready) in [
            ("not begun", "echo old >file", None, false),
            ("first start", ":", Some(":"), false),
            ("first start, written", ":", Some("echo new >part; mv part file"), true),
            ("start again", "echo old >file", Some(":"), false),
            ("start again, written", "echo old >file", Some("echo old >part; mv part file"), true),
            (
                "start again, clock set back",
                "echo old >file",
                Some("echo old >part; mv part file; touch -d 2001-01-01 file"),
                true,
            ),
        ] {
            let directory = tempfile::tempdir().unwrap();
            let after = after.map_or_else(String::new, |written| format!("{start}\n{written}\n"));
            let script = format!("cd {}\n{before}\n{after}{probe}", directory.path().display())
                .replace("/run/flannel/subnet.env", "file")
                .replace("/started", "started");
            let output = testing::run_script(directory.path(), &script);
            assert_eq!(output.status.success(), ready, "{case}: {output:?}");
        }
    }

    #[tokio::test]
    async fn with_two_families_flannel_is_told_the_second_address_of_its_node() {
        let mut spec = testing::sample("three-nodes.yaml");
        spec.network.pods_v6 = Some("fd00:40::/56".parse().unwrap());
        let directory = tempfile::tempdir().unwrap();
        let (session, fresh) = (testing::session(spec.clone(), directory.path()), testing::fresh(&spec));
        let text = manifest(&session.create_inputs(&fresh).await.unwrap()).unwrap().file;
        let documents: Vec<serde_json::Value> = serde_saphyr::from_multiple(&text).unwrap();
        let set = documents.iter().find(|document| document["kind"] == "DaemonSet").unwrap();
        let container = &set["spec"]["template"]["spec"]["containers"][0];
        let command = container["args"][0].as_str().unwrap().trim_end();
        assert!(command.ends_with("--iface=\"$NODE_IP\" --public-ipv6=\"${NODE_IPS##*,}\""), "{command}");
        assert!(container["env"].to_string().contains("status.hostIPs"), "{container}");
    }

    #[tokio::test]
    async fn direct_routing_is_a_setting_of_vxlan_that_restarts_the_pods() {
        let text = async |backend, direct| {
            let mut spec = testing::sample("three-nodes.yaml");
            spec.network.plugin = NetworkPlugin::Flannel(backend);
            spec.network.flannel_direct_routing = direct;
            let directory = tempfile::tempdir().unwrap();
            let (session, fresh) = (testing::session(spec.clone(), directory.path()), testing::fresh(&spec));
            manifest(&session.create_inputs(&fresh).await.unwrap()).unwrap().file
        };
        let backend_of = |text: &str| {
            let documents: Vec<serde_json::Value> = serde_saphyr::from_multiple(text).unwrap();
            let map =
                documents.iter().find(|document| document["data"]["net-conf.json"].is_string()).unwrap();
            let settings = map["data"]["net-conf.json"].as_str().unwrap();
            serde_json::from_str::<serde_json::Value>(settings).unwrap()["Backend"].clone()
        };
        let [plain, direct] =
            [text(FlannelBackend::Vxlan, false).await, text(FlannelBackend::Vxlan, true).await];
        assert_eq!(backend_of(&plain), json!({"Type": "vxlan"}));
        assert_eq!(backend_of(&direct), json!({"Type": "vxlan", "DirectRouting": true}));
        assert_ne!(annotation(&plain), annotation(&direct));
        assert_eq!(backend_of(&text(FlannelBackend::HostGw, true).await), json!({"Type": "host-gw"}));
    }

    fn annotation(text: &str) -> &str {
        text.lines().find(|line| line.contains("kubekey.kubesphere.io/config")).unwrap()
    }

    /// Pods restart when their template changes, not when their configuration does.
    #[tokio::test]
    async fn a_change_of_the_configuration_restarts_the_pods() {
        let [iptables, nftables] = [text(ProxyMode::Iptables).await, text(ProxyMode::Nftables).await];
        assert_ne!(annotation(&iptables), annotation(&nftables));
    }
}
