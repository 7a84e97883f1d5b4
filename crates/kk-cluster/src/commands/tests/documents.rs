//! Documents for kubeadm.

use crate::{model::kubeadm, testing};

/// Documents for kubeadm of one version, with the user's settings in every position.
async fn documents(version: &str) -> String {
    let text = format!(
        "apiVersion: kubekey.kubesphere.io/v1alpha2\nkind: Cluster\nmetadata: {{name: t}}\nspec:\n  hosts:\n  \
         - {{name: a, address: 192.0.2.1}}\n  - {{name: b, address: 192.0.2.2}}\n  roleGroups: {{etcd: [a], control-plane: [a], worker: [b]}}\n  \
         kubernetes:\n    version: {version}\n    maxPods: 50\n    apiserverArgs: [\"max-requests-inflight=800\"]\n    \
         featureGates: {{NodeSwap: true}}\n    kubeletConfiguration: {{evictionHard: {{memory.available: 100Mi}}}}\n    \
         apiserverCertExtraSans: [api.example.org]\n"
    );
    let spec = testing::spec(&text);
    let directory = tempfile::tempdir().unwrap();
    let facts = testing::fresh(&spec);
    let session = testing::session(spec, directory.path());
    let inputs = session.create_inputs(&facts).await.unwrap();
    let token =
        crate::base::token::Token { id: "abcdef".into(), secret: kk_config::Secret::new("0123456789abcdef") };
    let [first, second] = [&inputs.spec.hosts[0], &inputs.spec.hosts[1]];
    format!(
        "{}\n# join\n{}\n# discovery\n{}",
        kubeadm::init_documents(&inputs, first, &token),
        kubeadm::join_document(&inputs, second, &token, "discovery.conf"),
        kubeadm::discovery_kubeconfig(&inputs.endpoint().url(), "CA", &token),
    )
}

#[tokio::test]
async fn kubeadm_gets_documents_of_its_version() {
    for version in ["v1.28.15", "v1.30.14", "v1.31.14", "v1.36.0"] {
        let documents = documents(version).await;
        insta::assert_snapshot!(format!("kubeadm_{version}"), documents);
    }
}

#[tokio::test]
async fn kube_proxy_masquerades_all_in_every_mode() {
    for (mode, section) in [("iptables", "iptables:"), ("ipvs", "iptables:"), ("nftables", "nftables:")] {
        let mut spec = testing::sample("all-in-one.yaml");
        spec.kubernetes.proxy_mode = match mode {
            "ipvs" => kk_config::ProxyMode::Ipvs,
            "nftables" => kk_config::ProxyMode::Nftables,
            _ => kk_config::ProxyMode::Iptables,
        };
        spec.kubernetes.masquerade_all = true;
        let directory = tempfile::tempdir().unwrap();
        let facts = testing::fresh(&spec);
        let session = testing::session(spec, directory.path());
        let text = kubeadm::kube_proxy_documents(&session.create_inputs(&facts).await.unwrap());
        let (_, after) = text.split_once(&format!("\n{section}\n")).unwrap();
        assert!(after.starts_with("  masqueradeAll: true"), "{mode}: {text}");
    }
}
