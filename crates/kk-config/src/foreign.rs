//! Recognises files of other tools by their `apiVersion` or by their first keys.

use crate::reader::did_you_mean;
use crate::v1alpha2::API_VERSION;
use crate::yaml::Node;

/// A part of an API group, and the tool that it belongs to.
const GROUPS: [(&str, &str); 16] = [
    ("k0sctl.k0sproject.io", "k0sctl"),
    ("k0s.k0sproject.io", "k0s"),
    ("cluster.x-k8s.io", "Cluster API"),
    ("kubeadm.k8s.io", "kubeadm"),
    ("kubelet.config.k8s.io", "the kubelet"),
    ("kubeproxy.config.k8s.io", "kube-proxy"),
    ("kind.x-k8s.io", "kind"),
    ("k3d.io", "k3d"),
    ("eksctl.io", "eksctl"),
    ("kops.k8s.io", "kOps"),
    ("sealos.io", "sealos"),
    ("sealer.", "sealer"),
    ("kubeone.", "KubeOne"),
    ("minikube.", "minikube"),
    ("management.cattle.io", "Rancher"),
    ("provisioning.cattle.io", "Rancher"),
];

/// Top-level keys of a file without `kind`, and the tool that it belongs to. Such a file has all keys of an entry.
const KEYS: [(&[&str], &str); 14] = [
    (&["all", "children"], "Ansible (an inventory, as Kubespray has one)"),
    (&["all"], "Ansible (an inventory, as Kubespray has one)"),
    (&["kube_version"], "Kubespray (variables)"),
    (&["kube_network_plugin"], "Kubespray (variables)"),
    (&["machine", "cluster"], "Talos"),
    (&["cluster-init"], "K3s or RKE2"),
    (&["write-kubeconfig-mode"], "K3s or RKE2"),
    (&["tls-san"], "K3s or RKE2"),
    (&["server", "token"], "K3s or RKE2"),
    (&["node-label"], "K3s or RKE2"),
    (&["nodes", "services"], "RKE"),
    (&["cluster_name", "nodes"], "RKE"),
    (&["services"], "Docker Compose"),
    (&["microk8sVersion"], "MicroK8s"),
];

/// API groups of Kubernetes itself, whose objects are applied by kubectl.
const OBJECTS: [&str; 8] = [
    "v1",
    "apps/",
    "batch/",
    "rbac.authorization.k8s.io/",
    "networking.k8s.io/",
    "storage.k8s.io/",
    "policy/",
    "apiextensions.k8s.io/",
];

/// The message and the hint if this document belongs to another tool.
pub(crate) fn refusal(root: &Node) -> Option<(String, String)> {
    let owner = owner(root)?;
    let message = format!("this is a file of {owner}, not a Cluster file of kk");
    let hint = format!(
        "describe the cluster in a file of `apiVersion: {API_VERSION}`; `kk create config` writes one to start from"
    );
    Some((message, hint))
}

fn owner(root: &Node) -> Option<String> {
    let text = |key: &str| root.get(key).and_then(Node::text).filter(|text| !text.is_empty());
    let kind = text("kind");
    let Some(version) = text("apiVersion") else {
        if kind.is_some() {
            return None;
        }
        let has = |key: &&str| root.get(key).is_some();
        return KEYS.iter().find(|(keys, _)| keys.iter().all(has)).map(|(_, owner)| (*owner).to_owned());
    };
    if let Some((_, owner)) = GROUPS.iter().find(|(group, _)| version.contains(group)) {
        return Some(format!("{owner} (apiVersion `{version}`)"));
    }
    let is_object = |group: &&str| {
        version == group.trim_end_matches('/') || group.ends_with('/') && version.starts_with(*group)
    };
    if OBJECTS.iter().any(is_object) {
        // The older form of the second document, and KubeKey 4's documents, have their own messages.
        return match kind {
            Some("Config") if root.get("clusters").is_some() => Some("kubectl (a kubeconfig)".to_owned()),
            Some(
                "ConfigMap"
                | "Cluster"
                | "ClusterConfiguration"
                | "Manifest"
                | "Config"
                | "Inventory"
                | "Playbook",
            )
            | None => None,
            Some(kind) => Some(format!("Kubernetes (an object of kind `{kind}`)")),
        };
    }
    let group = version.split('/').next().unwrap_or_default();
    let own = ["kubekey.kubesphere.io", "installer.kubesphere.io"];
    let is_own = own.contains(&group) || did_you_mean(group, own.into_iter()).is_some();
    // A document of any other API group belongs to another tool, regardless of its kind.
    (!is_own && group.contains('.')).then(|| format!("another tool (apiVersion `{version}`)"))
}
