//! `spec.kubernetes` and `spec.components`.

use std::collections::{BTreeMap, BTreeSet};

use kk_artifact::{Component, Versions};
use kk_config::{Components, v1alpha2};
use serde_json::{Value, json};

use super::{
    Cluster,
    answers::Answers,
    nodes::{Node, text},
    settings::{flags, gates, is_unset, short_duration, without_zeros},
    text::{Text, number, scalar},
};
use crate::commands::kubectl::items;

/// Flags of kube-controller-manager that kk sets for each cluster.
const OWN_FLAGS: [(&str, &str); 2] = [("kube-api-qps", "50"), ("kube-api-burst", "100")];
/// Kubernetes' own default, where kk has another one.
const DEFAULT_MASK_V6: &str = "64";

/// `spec.kubernetes`.
pub(super) fn kubernetes(cluster: &Cluster<'_>, out: &mut Text, depth: usize) {
    let Cluster { config, version, .. } = cluster;
    let defaults = v1alpha2::Kubernetes::default();
    out.line(depth, format!("version: {version}"));
    let others: Vec<String> = (cluster.nodes.iter())
        .filter(|node| node.kubelet != version.to_string())
        .map(|node| format!("{} has {}", node.name, node.kubelet))
        .collect();
    if !others.is_empty() {
        out.note(depth, &format!("An upgrade of the nodes is not complete: {}.", others.join(", ")));
    }
    let name = config["clusterName"].as_str().unwrap_or("kubernetes");
    field(out, depth, "clusterName", name, &defaults.cluster_name);
    let domain = cluster.dns_domain();
    field(out, depth, "dnsDomain", domain, &defaults.dns_domain);
    if version.at_least(1, 31) {
        let algorithm = config["encryptionAlgorithm"].as_str().unwrap_or("RSA-2048");
        field(out, depth, "encryptionAlgorithm", algorithm, "ECDSA-P256");
        for (key, default) in
            [("certificateValidityPeriod", "8760h"), ("caCertificateValidityPeriod", "87600h")]
        {
            field(out, depth, key, short_duration(config[key].as_str().unwrap_or(default)), default);
        }
    }
    out.list(depth, "apiserverCertExtraSans", cluster.extra_names());
    let [mut api, mut manager, mut scheduler] =
        ["apiServer", "controllerManager", "scheduler"].map(|component| flags(&config[component]));
    masks(cluster, &mut manager, &defaults, out, depth);
    for (name, value) in OWN_FLAGS {
        if manager.get(name).is_some_and(|given| given == value) {
            manager.remove(name);
        }
    }
    let kubelet = cluster.answers.config("kubelet-config", "kubelet");
    let common = common_gates([&api, &manager, &scheduler], kubelet.as_ref().ok().and_then(Option::as_ref));
    if !common.is_empty() {
        for component in [&mut api, &mut manager, &mut scheduler] {
            component.remove("feature-gates");
        }
        out.section(depth, "featureGates", |out, depth| {
            for (gate, on) in &common {
                out.optional(depth, format!("{}: {on}", scalar(gate)));
            }
        });
    }
    for (key, flags) in
        [("apiserverArgs", api), ("controllerManagerArgs", manager), ("schedulerArgs", scheduler)]
    {
        let texts: Vec<String> = flags.iter().map(|(name, value)| format!("{name}={value}")).collect();
        out.list(depth, key, texts.iter().map(String::as_str));
    }
    for component in ["apiServer", "controllerManager", "scheduler"] {
        let volumes = config[component]["extraVolumes"].as_array().into_iter().flatten();
        let paths: Vec<String> = volumes.map(|volume| text(&volume["hostPath"])).collect();
        if !paths.is_empty() {
            out.note(
                depth,
                &format!(
                    "{component} of kubeadm has extraVolumes ({}), for which this file has no field.",
                    paths.join(", ")
                ),
            );
        }
    }
    match kubelet {
        Ok(Some(kubelet)) => kubelet_settings(cluster, &kubelet, &common, &defaults, out, depth),
        Ok(None) => out.note(
            depth,
            "The settings of kubelets are unknown: kube-system has no ConfigMap kubelet-config.",
        ),
        Err(why) => out.note(depth, &format!("The settings of kubelets are unknown: {why}.")),
    }
    kube_proxy(cluster, &common, &defaults, out, depth);
    if let Some(cache) =
        ["nodelocaldns", "node-local-dns"].into_iter().find_map(|name| cluster.answers.daemon_set(name))
    {
        out.note(
            depth,
            &format!(
                "The nodes run a DNS cache (DaemonSet {}), which kk neither installs nor changes yet: nodelocaldns has no effect.",
                text(&cache["metadata"]["name"])
            ),
        );
    }
    runtimes(&cluster.nodes, out, depth);
}

fn field(out: &mut Text, depth: usize, key: &str, value: &str, default: &str) {
    if value != default {
        out.optional(depth, format!("{key}: {}", scalar(value)));
    }
}

fn number_field(out: &mut Text, depth: usize, key: &str, value: &str, default: u32) {
    if value != default.to_string() {
        out.optional(depth, format!("{key}: {}", number(value)));
    }
}

/// Sizes of the nodes' shares of the pod range, which are flags of kube-controller-manager.
fn masks(
    cluster: &Cluster<'_>,
    manager: &mut BTreeMap<String, String>,
    defaults: &v1alpha2::Kubernetes,
    out: &mut Text,
    depth: usize,
) {
    let v4 = ["node-cidr-mask-size-ipv4", "node-cidr-mask-size"].map(|flag| manager.remove(flag));
    if let Some(size) = v4.into_iter().flatten().next() {
        number_field(out, depth, "nodeCidrMaskSize", &size, defaults.node_cidr_mask_size.into());
    }
    let v6 = manager.remove("node-cidr-mask-size-ipv6");
    if cluster.is_dual_stack() {
        let size = v6.unwrap_or_else(|| DEFAULT_MASK_V6.to_owned());
        number_field(out, depth, "nodeCidrMaskSizeIPv6", &size, defaults.node_cidr_mask_size_ipv6.into());
    }
}

/// The feature gates that all components have in common.
fn common_gates(
    components: [&BTreeMap<String, String>; 3],
    kubelet: Option<&Value>,
) -> BTreeMap<String, bool> {
    let [first, rest @ ..] = components.map(|flags| flags.get("feature-gates").map(|flag| gates(flag)));
    let Some(first) = first else { return BTreeMap::new() };
    let is_same = |other: &Option<BTreeMap<String, bool>>| other.as_ref() == Some(&first);
    let of_kubelet = kubelet.is_some_and(|kubelet| kubelet["featureGates"] == json!(first));
    if rest.iter().all(is_same) && of_kubelet { first } else { BTreeMap::new() }
}

/// Keys with values that kubeadm or kk find out for themselves.
const FOUND_OUT: [&str; 7] = [
    "apiVersion",
    "cgroupDriver",
    "clusterDomain",
    "containerRuntimeEndpoint",
    "kind",
    "maxPods",
    "podPidsLimit",
];

/// The settings of kubeadm for each kubelet.
fn of_kubeadm() -> Value {
    json!({
        "authentication": {
            "anonymous": {"enabled": false},
            "webhook": {"enabled": true},
            "x509": {"clientCAFile": "/etc/kubernetes/pki/ca.crt"},
        },
        "authorization": {"mode": "Webhook"},
        "healthzBindAddress": "127.0.0.1",
        "healthzPort": 10_248,
        "resolvConf": "/run/systemd/resolve/resolv.conf",
        "rotateCertificates": true,
        "staticPodPath": "/etc/kubernetes/manifests",
    })
}

fn kubelet_settings(
    cluster: &Cluster<'_>,
    kubelet: &Value,
    common: &BTreeMap<String, bool>,
    defaults: &v1alpha2::Kubernetes,
    out: &mut Text,
    depth: usize,
) {
    // Kubernetes' own defaults, if the cluster has no value.
    let integer =
        |key: &str, default: i64| kubelet[key].as_i64().filter(|value| *value != 0).unwrap_or(default);
    number_field(out, depth, "maxPods", &integer("maxPods", 110).to_string(), defaults.max_pods);
    let pids = integer("podPidsLimit", -1);
    if pids != defaults.pod_pids_limit {
        out.optional(depth, format!("podPidsLimit: {pids}"));
    }
    let mut known = of_kubeadm();
    let of_kk = kk_cluster::kubelet_defaults();
    for (key, value) in of_kk.as_object().into_iter().flatten() {
        known[key] = value.clone();
    }
    if let Some(address) = cluster.dns_address() {
        known["clusterDNS"] = json!([address]);
    }
    known["featureGates"] = json!(common);
    let mut lacking: Vec<&str> = Vec::new();
    out.section(depth, "kubeletConfiguration", |out, depth| {
        for (key, value) in kubelet.as_object().into_iter().flatten() {
            let value = without_zeros(key, value);
            if !is_unset(&value) && !FOUND_OUT.contains(&key.as_str()) && value != known[key] {
                out.optional(depth, format!("{}: {value}", scalar(key)));
            }
        }
        let is_lacking = |key: &&String| is_unset(&without_zeros(key, &kubelet[key.as_str()]));
        lacking.extend(
            of_kk
                .as_object()
                .into_iter()
                .flatten()
                .map(|(key, _)| key)
                .filter(is_lacking)
                .map(String::as_str),
        );
    });
    if !lacking.is_empty() {
        out.note(
            depth,
            &format!(
                "kk also sets these keys for kubelets, which the cluster does not set: {}.",
                lacking.join(", ")
            ),
        );
    }
}

/// Keys of kube-proxy's configuration that kubeadm or kk set.
const OF_KUBE_PROXY: [&str; 7] =
    ["apiVersion", "bindAddress", "clientConnection", "clusterCIDR", "hostnameOverride", "kind", "mode"];

fn kube_proxy(
    cluster: &Cluster<'_>,
    common: &BTreeMap<String, bool>,
    defaults: &v1alpha2::Kubernetes,
    out: &mut Text,
    depth: usize,
) {
    if cluster.answers.daemon_set("kube-proxy").is_none() {
        out.line(depth, "disableKubeProxy: true");
        return;
    }
    let config = match cluster.answers.config("kube-proxy", "config.conf") {
        Ok(Some(config)) => config,
        Ok(None) => {
            return out.note(
                depth,
                "The settings of kube-proxy are unknown: kube-system has no ConfigMap kube-proxy.",
            );
        }
        Err(why) => return out.note(depth, &format!("The settings of kube-proxy are unknown: {why}.")),
    };
    let mode = config["mode"].as_str().filter(|mode| !mode.is_empty()).unwrap_or("iptables");
    field(out, depth, "proxyMode", mode, defaults.proxy_mode.as_str());
    let section = if mode == "nftables" { "nftables" } else { "iptables" };
    let masquerade_all = config[section]["masqueradeAll"] == true;
    if masquerade_all {
        out.line(depth, "masqueradeAll: true");
    }
    out.section(depth, "kubeProxyConfiguration", |out, depth| {
        for (key, value) in config.as_object().into_iter().flatten() {
            let mut value = without_zeros(key, value);
            drop_false(&mut value);
            match key.as_str() {
                key if OF_KUBE_PROXY.contains(&key) => continue,
                "featureGates" if value == json!(common) => continue,
                // `masqueradeAll` has a field of its own.
                "iptables" | "nftables" => {
                    let mut rest = value.clone();
                    if let Some(rest) = rest.as_object_mut() {
                        rest.remove("masqueradeAll");
                    }
                    if rest == json!({"masqueradeBit": 14, "syncPeriod": "30s"}) || is_unset(&rest) {
                        continue;
                    }
                }
                "ipvs" => {
                    let own = cluster.virtual_address().map(|address| json!([format!("{address}/32")]));
                    if let (Some(own), Some(ipvs)) = (own, value.as_object_mut())
                        && ipvs.get("excludeCIDRs") == Some(&own)
                    {
                        ipvs.remove("excludeCIDRs");
                    }
                }
                _ => {}
            }
            if !is_unset(&value) && value != json!(false) {
                out.optional(depth, format!("{}: {value}", scalar(key)));
            }
        }
    });
}

/// In kube-proxy's configuration, `false` is what is not set, except for one key, which is null then.
fn drop_false(value: &mut Value) {
    if let Some(map) = value.as_object_mut() {
        map.values_mut().for_each(drop_false);
        map.retain(|key, value| *value != json!(false) || key == "localhostNodePorts");
    }
}

fn runtimes(nodes: &[Node], out: &mut Text, depth: usize) {
    let others: BTreeSet<&str> = nodes
        .iter()
        .map(|node| node.runtime.as_str())
        .filter(|runtime| !runtime.starts_with("containerd://"))
        .collect();
    if !others.is_empty() {
        let others = Vec::from_iter(others).join(", ");
        out.note(depth, &format!("Nodes run {others}: kk only runs containerd."));
    }
}

/// The container of calico's agent.
const CALICO: &str = "calico-node";

/// `spec.components`: versions that are not the defaults for the version of Kubernetes.
pub(super) fn components(cluster: &Cluster<'_>, out: &mut Text, depth: usize) {
    let defaults = Versions::for_kubernetes(cluster.version, &Components::default());
    let default = |key: &str| {
        defaults
            .iter()
            .flat_map(Versions::components)
            .find(|(known, _)| *known == key)
            .map(|(_, version)| version)
    };
    let runtimes: BTreeSet<&str> =
        cluster.nodes.iter().filter_map(|node| node.runtime.strip_prefix("containerd://")).collect();
    let runtimes: Vec<&str> = runtimes.iter().map(|version| version.trim_start_matches('v')).collect();
    if let [version] = runtimes[..] {
        field(out, depth, "containerd", version, default("containerd").unwrap_or_default());
    } else if !runtimes.is_empty() {
        out.note(depth, &format!("Nodes have different versions of containerd: {}.", runtimes.join(", ")));
    }
    let tags = tags(cluster.answers);
    for (component, image) in [
        (Component::Coredns, "coredns"),
        (Component::Flannel, "flannel"),
        (Component::FlannelCniPlugin, "flannel-cni-plugin"),
        (Component::Haproxy, "haproxy"),
        (Component::KubeVip, "kube-vip"),
        (Component::Cilium, "cilium"),
        (Component::Calico, CALICO),
    ] {
        let key = component.version_key();
        if let Some(version) = tags.get(image) {
            field(out, depth, key, version, default(key).unwrap_or_default());
        }
    }
    out.note(depth, "The versions of etcd, runc and the CNI plugins are not stored in the cluster: `kk versions show` lists the versions that kk installs.");
}

/// Versions of the images of kube-system and of `DaemonSets`, without a leading v, by the last part of their names. The image of
/// calico's agent has no name of its own there.
fn tags(answers: &Answers) -> BTreeMap<String, String> {
    let pods = items(&answers.pods).map(|pod| &pod["spec"]);
    let sets = items(&answers.daemon_sets).map(|set| &set["spec"]["template"]["spec"]);
    let containers = pods.chain(sets).flat_map(|pod| {
        ["containers", "initContainers"]
            .into_iter()
            .flat_map(|list| pod[list].as_array().into_iter().flatten())
    });
    let mut tags = BTreeMap::new();
    for container in containers {
        let image = container["image"].as_str().unwrap_or_default();
        let image = image.split('@').next().unwrap_or(image);
        let Some((name, tag)) = image.rsplit_once(':').filter(|(_, tag)| !tag.contains('/')) else {
            continue;
        };
        let last = name.rsplit('/').next().unwrap_or(name);
        let name = if container["name"] == CALICO { CALICO } else { last };
        tags.insert(name.to_owned(), tag.trim_start_matches('v').to_owned());
    }
    tags
}
