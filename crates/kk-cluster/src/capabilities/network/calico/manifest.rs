//! The manifest of calico: the published documents with the settings of the file.

use std::collections::BTreeMap;

use kk_artifact::Component;
use kk_config::{Calico as Settings, CalicoWorkload, ImageName, Network, ProxyMode};
use kk_util::sha256;
use serde_json::{Value, json};

use super::settings;
use crate::{
    base::{error::BuildError, requirements::Manifest, supply::rename_images},
    capabilities::manifests::{Missing, Overlay, Place, from_documents},
    model::cluster::Cluster,
};

/// The `ConfigMap` by which the pods of calico learn the address of the API; Services do not work before the network.
const ENDPOINT: &str = "kubernetes-services-endpoint";
/// The CNI binaries in calico's image that kk installs in its own version.
const NOT_INSTALLED: &str = "bandwidth,flannel,host-local,loopback,portmap,tuning";
/// The method by which a node finds its address: its internal address in the API.
const INTERNAL_IP: &str = "kubernetes-internal-ip";

/// The settings that the documents get.
struct Wanted<'a> {
    settings: &'a Settings,
    network: &'a Network,
    nftables: bool,
    /// Name and port of the API. Not an address: the name resolves to another one while a host is down.
    api: (String, u16),
}

/// The adapted documents, as input for `kubectl apply`.
///
/// # Errors
/// The documents lack something that the settings need.
pub(super) fn manifest(cluster: &Cluster, documents: &[Value]) -> Result<Manifest, BuildError> {
    let settings = settings(cluster.spec).expect("the file specifies calico");
    let (name, port) = cluster.endpoint().for_pods();
    let wanted = Wanted {
        settings,
        network: &cluster.spec.network,
        nftables: cluster.spec.kubernetes.proxy_mode == ProxyMode::Nftables,
        api: (name.to_owned(), port),
    };
    let mut documents = documents.to_vec();
    wanted.apply(&mut documents).map_err(|missing| {
        let version = cluster.versions.of(Component::Calico);
        BuildError::local(
            format!("the manifest of calico {version} cannot be adapted: {missing}"),
            "kk does not know a manifest with this structure: use another version in spec.components.calico",
        )
    })?;
    rename_images(&mut documents, &|name| match name.parse::<ImageName>() {
        Ok(image) => cluster.images.of_published(&image),
        Err(_) => name.to_owned(),
    });
    from_documents("calico", &documents)
}

impl Wanted<'_> {
    fn apply(&self, documents: &mut Vec<Value>) -> Result<(), Missing> {
        let mut all = Overlay::new(documents);
        let config = self.configure(&mut all)?;
        let endpoint = json!({
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": ENDPOINT, "namespace": "kube-system"},
            "data": {"KUBERNETES_SERVICE_HOST": self.api.0, "KUBERNETES_SERVICE_PORT": self.api.1.to_string()},
        });
        // Pods read their configuration when they start.
        let sum = sha256(format!("{config}{endpoint}"));
        all.insert_after("ConfigMap", "calico-config", endpoint)?;
        self.node(&mut all.object("DaemonSet", "calico-node")?, &sum)?;
        scale(&mut all.object("Deployment", "calico-kube-controllers")?, &self.settings.controllers)?;
        if let Some(workload) = &self.settings.typha {
            let mut typha = all.object("Deployment", "calico-typha")?;
            typha
                .at("spec/template/spec/containers")?
                .named("calico-typha")?
                .requires_variables_of(ENDPOINT)?;
            annotate(&mut typha, &sum)?;
            scale(&mut typha, workload)?;
        }
        Ok(())
    }

    /// Returns the text of the configuration.
    fn configure(&self, all: &mut Overlay<'_>) -> Result<String, Missing> {
        let mut config = all.object("ConfigMap", "calico-config")?;
        let mut data = config.at("data")?;
        if self.settings.mtu != 0 {
            data.at("veth_mtu")?.replace(self.settings.mtu.to_string());
        }
        if self.settings.uses_vxlan() {
            // Without BGP no node listens on port 179.
            data.at("calico_backend")?.replace("vxlan");
        }
        if self.network.pods_v6.is_some() {
            let ipam = r#""type": "calico-ipam""#;
            let both = format!(r#"{ipam}, "assign_ipv4": "true", "assign_ipv6": "true""#);
            data.at("cni_network_config")?.replace_text(ipam, &both)?;
        }
        Ok(data.text())
    }

    fn node(&self, set: &mut Place<'_>, sum: &str) -> Result<(), Missing> {
        annotate(set, sum)?;
        // A large cluster would need hours with one node after the other.
        set.at("spec/updateStrategy/rollingUpdate/maxUnavailable")?.replace("10%");
        let mut pods = set.at("spec/template/spec")?;
        {
            let mut init = pods.at("initContainers")?;
            init.named("upgrade-ipam")?.requires_variables_of(ENDPOINT)?;
            let mut install = init.named("install-cni")?;
            install.requires_variables_of(ENDPOINT)?;
            install.set_variable("SKIP_CNI_BINARIES", NOT_INSTALLED)?;
        }
        let mut containers = pods.at("containers")?;
        let mut node = containers.named("calico-node")?;
        node.requires_variables_of(ENDPOINT)?;
        if self.settings.uses_vxlan() {
            node.at("livenessProbe/exec/command")?.remove_item("-bird-live")?;
            node.at("readinessProbe/exec/command")?.remove_item("-bird-ready")?;
        }
        let method = self.settings.autodetection.as_deref().unwrap_or(INTERNAL_IP);
        node.set_variable("IP_AUTODETECTION_METHOD", method)?;
        if self.nftables {
            node.set_variable("FELIX_NFTABLESMODE", "Enabled")?;
        }
        if self.network.pods_v6.is_some() {
            node.set_variable("IP6", "autodetect")?;
            node.set_variable("IP6_AUTODETECTION_METHOD", INTERNAL_IP)?;
            node.change_variable("FELIX_IPV6SUPPORT", "true")?;
        }
        self.pools(&mut node)
    }

    fn pools(&self, node: &mut Place<'_>) -> Result<(), Missing> {
        let Settings { ipip, vxlan, nat_outgoing, nat_outgoing_v6, default_pool, block_size, .. } =
            self.settings;
        node.change_variable("CALICO_IPV4POOL_IPIP", &ipip.to_string())?;
        node.change_variable("CALICO_IPV4POOL_VXLAN", &vxlan.to_string())?;
        node.change_variable("CALICO_IPV6POOL_VXLAN", &vxlan.to_string())?;
        if !default_pool {
            // calico does not start if a range is set, too.
            return node.set_variable("NO_DEFAULT_POOLS", "true");
        }
        node.set_variable("CALICO_IPV4POOL_CIDR", &self.network.pods.to_string())?;
        if let Some(size) = block_size {
            node.set_variable("CALICO_IPV4POOL_BLOCK_SIZE", &size.to_string())?;
        }
        if !nat_outgoing {
            node.set_variable("CALICO_IPV4POOL_NAT_OUTGOING", "false")?;
        }
        if let Some(pods) = self.network.pods_v6 {
            node.set_variable("CALICO_IPV6POOL_CIDR", &pods.to_string())?;
            node.set_variable("CALICO_IPV6POOL_NAT_OUTGOING", &nat_outgoing_v6.to_string())?;
        }
        Ok(())
    }
}

fn annotate(workload: &mut Place<'_>, sum: &str) -> Result<(), Missing> {
    workload.at("spec/template/metadata")?.annotate("kubekey.kubesphere.io/config", &sum[..16])
}

fn scale(deployment: &mut Place<'_>, workload: &CalicoWorkload) -> Result<(), Missing> {
    let CalicoWorkload { replicas, node_selector } = workload;
    if let Some(replicas) = replicas {
        deployment.at("spec/replicas")?.replace(*replicas);
    }
    if !node_selector.is_empty() {
        deployment.at("spec/template/spec/nodeSelector")?.merge(labels(node_selector))?;
    }
    Ok(())
}

fn labels(labels: &BTreeMap<String, String>) -> impl Iterator<Item = (String, Value)> {
    labels.iter().map(|(key, value)| (key.clone(), value.as_str().into()))
}
