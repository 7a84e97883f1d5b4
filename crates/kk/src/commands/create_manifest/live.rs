//! Queries the API of a running cluster for its contents.

use std::collections::BTreeSet;
use std::path::Path;

use kk_config::{Arch, DEFAULT_KUBERNETES_VERSION, ImageName, KubeVersion, OperatingSystem};
use serde_json::Value;

use super::super::kubectl::{self, Failure, items};
use crate::error::Error;

/// The facts of its nodes, and the images of its pods.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct LiveCluster {
    pub(super) arches: BTreeSet<Arch>,
    pub(super) kubernetes: BTreeSet<KubeVersion>,
    /// Versions of the runtime containerd, without a v.
    pub(super) containerd: BTreeSet<String>,
    pub(super) images: BTreeSet<ImageName>,
    pub(super) systems: BTreeSet<OperatingSystem>,
    /// Parts of it that a bundle cannot contain, each as text.
    pub(super) left_out: BTreeSet<String>,
}

/// Queries the cluster of a kubeconfig.
pub(super) async fn ask(kubeconfig: &Path) -> Result<LiveCluster, Error> {
    let (nodes, pods) = tokio::try_join!(list(kubeconfig, "nodes"), list(kubeconfig, "pods"))?;
    let cluster = LiveCluster::of(&nodes, &pods);
    if cluster.kubernetes.is_empty() {
        let message = format!(
            "no node of the cluster of {} reports a Kubernetes version of the form {DEFAULT_KUBERNETES_VERSION}",
            kubeconfig.display()
        );
        return Err(Error::config(
            message,
            Some("specify its versions with --with-kubernetes instead".to_owned()),
        ));
    }
    Ok(cluster)
}

async fn list(kubeconfig: &Path, kind: &str) -> Result<Value, Error> {
    kubectl::get(Some(kubeconfig), &[kind, "-A"]).await.map_err(|failure| match failure {
        Failure::NotStarted(why) => {
            let hint = "put kubectl into a directory of PATH, or name the file of the cluster with -f";
            Error::config(format!("cannot run kubectl to query the cluster: {why}"), Some(hint.to_owned()))
        }
        Failure::NoAnswer(why) => {
            let message = format!("cannot list the {kind} of the cluster of {}: {why}", kubeconfig.display());
            let hint =
                "the kubeconfig must point to a reachable cluster, and allow listing nodes and all pods";
            Error::config(message, Some(hint.to_owned()))
        }
    })
}

impl LiveCluster {
    /// Evaluates the lists of nodes and pods.
    fn of(nodes: &Value, pods: &Value) -> Self {
        let mut cluster = Self::default();
        for node in items(nodes) {
            cluster.add_node(node);
        }
        for pod in items(pods) {
            let lists = ["containers", "initContainers", "ephemeralContainers"];
            let containers = lists.iter().flat_map(|list| pod["spec"][list].as_array().into_iter().flatten());
            for image in containers.filter_map(|container| container["image"].as_str()) {
                match full_name(image).parse::<ImageName>() {
                    Ok(name) => drop(cluster.images.insert(name)),
                    Err(_) => drop(cluster.left_out.insert(format!("the image {image}"))),
                }
            }
        }
        cluster
    }

    fn add_node(&mut self, node: &Value) {
        let info = |field: &str| node["status"]["nodeInfo"][field].as_str().unwrap_or_default();
        let arch = Arch::from_name(info("architecture"));
        self.arches.extend(arch);
        match info("kubeletVersion").parse::<KubeVersion>() {
            Ok(version) => drop(self.kubernetes.insert(version)),
            Err(_) => drop(self.left_out.insert(format!("Kubernetes {}", info("kubeletVersion")))),
        }
        match info("containerRuntimeVersion").split_once("://") {
            Some(("containerd", version)) => drop(self.containerd.insert(bare(version).to_owned())),
            _ => drop(self.left_out.insert(format!("the runtime {}", info("containerRuntimeVersion")))),
        }
        match arch.and_then(|arch| system(info("osImage"), arch)) {
            Some(system) => drop(self.systems.insert(system)),
            None => drop(self.left_out.insert(format!("packages of {}", info("osImage")))),
        }
    }
}

fn bare(version: &str) -> &str {
    version.strip_prefix('v').unwrap_or(version)
}

/// Parses `PRETTY_NAME` of os-release, which is all that a node reports: `Debian GNU/Linux 12 (bookworm)`, `Ubuntu 24.04.1 LTS`.
fn system(name: &str, arch: Arch) -> Option<OperatingSystem> {
    let mut words = name.split_whitespace();
    let id = words.next()?.to_ascii_lowercase();
    let number = words.find(|word| word.starts_with(|c: char| c.is_ascii_digit()))?;
    let parts: Vec<&str> = number.split('.').collect();
    let version = match &*id {
        "debian" => parts.first()?.to_string(),
        "ubuntu" => parts.get(..2)?.join("."),
        _ => return None,
    };
    let (sources, keyring, packages) = (Vec::new(), None, BTreeSet::new());
    let system = OperatingSystem { id, version, arch, sources, keyring, packages };
    system.code_name().is_some().then_some(system)
}

/// Completes a short name like runtimes do.
fn full_name(image: &str) -> String {
    let (name, digest) = image.split_once('@').map_or((image, None), |(name, digest)| (name, Some(digest)));
    let is_registry = |first: &str| first.contains(['.', ':']) || first == "localhost";
    let mut full = match name.split_once('/') {
        Some((first, _)) if is_registry(first) => name.to_owned(),
        Some(_) => format!("docker.io/{name}"),
        None => format!("docker.io/library/{name}"),
    };
    let has_tag = full.rsplit('/').next().is_some_and(|last| last.contains(':'));
    match digest {
        Some(digest) => full = format!("{full}@{digest}"),
        None if !has_tag => full += ":latest",
        None => {}
    }
    full
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The answer of a cluster of three nodes, without fields that are not read.
    const NODES: &str = include_str!("nodes.json");
    const PODS: &str = include_str!("pods.json");

    #[test]
    fn nodes_and_pods_say_what_the_cluster_is_made_of() {
        let [nodes, pods] = [NODES, PODS].map(|text| serde_json::from_str(text).unwrap());
        let LiveCluster { arches, kubernetes, containerd, images, systems, left_out } =
            LiveCluster::of(&nodes, &pods);
        assert_eq!(Vec::from_iter(arches), [Arch::Amd64, Arch::Arm64]);
        let versions: Vec<String> = kubernetes.iter().map(ToString::to_string).collect();
        assert_eq!(versions, ["v1.35.4", "v1.36.0"]);
        assert_eq!(Vec::from_iter(containerd), ["2.4.2"]);
        let systems: Vec<String> = systems.iter().map(ToString::to_string).collect();
        assert_eq!(systems, ["debian 12 amd64", "ubuntu 24.04 arm64"]);
        let images: Vec<String> = images.iter().map(ToString::to_string).collect();
        let digest = "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";
        assert_eq!(
            images,
            [
                "docker.io/library/busybox:latest".to_owned(),
                "docker.io/library/nginx:1.27".to_owned(),
                format!("quay.io/team/db@{digest}"),
                "registry.k8s.io/kube-proxy:v1.36.0".to_owned(),
            ]
        );
        let left_out: Vec<String> = left_out.into_iter().collect();
        assert_eq!(
            left_out,
            ["packages of Rocky Linux 9.5 (Blue Onyx)", "the image Bad Name", "the runtime cri-o://1.33.0"]
        );
    }
}
