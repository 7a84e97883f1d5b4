//! `spec.network`.

use std::collections::BTreeMap;

use serde_json::Value;

use super::{
    Cluster,
    nodes::text,
    text::{Text, scalar},
};

/// Agents of plugins that kk does not install, and their names.
const OTHERS: [(&str, &str); 6] = [
    ("kube-ovn-cni", "Kube-OVN"),
    ("kube-router", "kube-router"),
    ("hybridnet-daemon", "hybridnet"),
    ("weave-net", "Weave Net"),
    ("antrea-agent", "Antrea"),
    ("canal", "Canal"),
];
const BY_USER: &str = "kk neither installs nor changes it";
/// KubeKey and kk set up Typha in larger clusters.
const NODES_WITHOUT_TYPHA: usize = 50;

/// `spec.network`.
pub(super) fn write(cluster: &Cluster<'_>, out: &mut Text, depth: usize) {
    plugin(cluster, out, depth);
    let networking = &cluster.config["networking"];
    for (key, field, what) in
        [("kubePodsCIDR", "podSubnet", "pods"), ("kubeServiceCIDR", "serviceSubnet", "Services")]
    {
        match networking[field].as_str().filter(|range| !range.is_empty()) {
            Some(range) => out.line(depth, format!("{key}: {}", scalar(range))),
            // The ranges cannot change later, so that the default would not describe the cluster.
            None => out.note(
                depth,
                &format!("The range of {what} is unknown, because kubeadm has no {field}: fill in {key}."),
            ),
        }
    }
}

fn plugin(cluster: &Cluster<'_>, out: &mut Text, depth: usize) {
    let answers = cluster.answers;
    let in_system = |set: &&Value| set["metadata"]["namespace"] == "kube-system";
    if answers.daemon_set("kube-flannel-ds").is_some() {
        flannel(&answers.plugin, out, depth);
    } else if let Some(set) = answers.daemon_set("calico-node").filter(in_system) {
        calico(cluster, set, out, depth);
    } else if answers.daemon_set("calico-node").is_some() {
        out.note(depth, &format!("calico is installed by its operator: {BY_USER}."));
        out.line(depth, "plugin: none");
    } else if answers.daemon_set("cilium").as_ref().is_some_and(in_system) {
        out.line(depth, "plugin: cilium");
        out.note(
            depth,
            "Fill in `cilium.values`: your values of the chart, which `helm get values cilium -n kube-system` prints. \
             kk adds its own values. Write `plugin: none` if kk must not change Cilium.",
        );
    } else {
        let known = OTHERS.iter().find(|(set, _)| answers.daemon_set(set).is_some());
        match known {
            Some((_, name)) => out.note(depth, &format!("The network plugin is {name}: {BY_USER}.")),
            None => out.note(
                depth,
                &format!("The network plugin is unknown, because no DaemonSet has a known name: {BY_USER}."),
            ),
        }
        out.line(depth, "plugin: none");
    }
}

fn flannel(config: &Value, out: &mut Text, depth: usize) {
    let parsed = serde_json::from_str::<Value>(config["data"]["net-conf.json"].as_str().unwrap_or_default());
    let Ok(parsed) = parsed else {
        out.line(depth, "plugin: flannel");
        out.note(depth, "The backend of flannel is unknown: its ConfigMap kube-flannel-cfg cannot be read.");
        return;
    };
    let backend = text(&parsed["Backend"]["Type"]);
    if !["vxlan", "host-gw"].contains(&&*backend) {
        out.note(depth, &format!("flannel has the backend {backend}, which kk does not set up: {BY_USER}."));
        return out.line(depth, "plugin: none");
    }
    out.line(depth, "plugin: flannel");
    out.section(depth, "flannel", |out, depth| {
        if backend == "host-gw" {
            out.line(depth, "backendMode: host-gw");
        }
        if parsed["Backend"]["DirectRouting"] == true {
            out.line(depth, "directRouting: true");
        }
    });
}

fn calico(cluster: &Cluster<'_>, set: &Value, out: &mut Text, depth: usize) {
    let containers = set["spec"]["template"]["spec"]["containers"].as_array().into_iter().flatten();
    let env: BTreeMap<&str, &str> = containers
        .filter(|container| container["name"] == "calico-node")
        .flat_map(|container| container["env"].as_array().into_iter().flatten())
        .filter_map(|variable| Some((variable["name"].as_str()?, variable["value"].as_str()?)))
        .collect();
    let is = |name: &str, value: &str| env.get(name).is_some_and(|found| *found == value);
    let typha = cluster.answers.replicas_of("calico-typha-");
    out.line(depth, "plugin: calico");
    out.section(depth, "calico", |out, depth| {
        let vxlan = env.get("CALICO_IPV4POOL_VXLAN").copied().unwrap_or("Never");
        let ipip = env.get("CALICO_IPV4POOL_IPIP").copied().unwrap_or("Never");
        if ipip != if vxlan == "Never" { "Always" } else { "Never" } {
            out.optional(depth, format!("ipipMode: {}", scalar(ipip)));
        }
        if vxlan != "Never" {
            out.optional(depth, format!("vxlanMode: {}", scalar(vxlan)));
        }
        match cluster.answers.plugin["data"]["veth_mtu"].as_str() {
            Some("0") | None => {}
            Some(mtu) => out.optional(depth, format!("vethMTU: {}", mtu.trim())),
        }
        if let Some(method) =
            env.get("IP_AUTODETECTION_METHOD").filter(|method| **method != "kubernetes-internal-ip")
        {
            out.optional(depth, format!("ipAutoDetectionMethod: {}", scalar(method)));
        }
        if is("CALICO_IPV4POOL_NAT_OUTGOING", "false") {
            out.line(depth, "ipv4NatOutgoing: false");
        }
        if is("CALICO_IPV6POOL_NAT_OUTGOING", "true") {
            out.line(depth, "ipv6NatOutgoing: true");
        }
        if is("NO_DEFAULT_POOLS", "true") {
            out.line(depth, "defaultIPPOOL: false");
        }
        if let Some(size) = env.get("CALICO_IPV4POOL_BLOCK_SIZE") {
            out.optional(depth, format!("blockSize: {size}"));
        }
        match (typha, cluster.nodes.len() > NODES_WITHOUT_TYPHA) {
            (0, true) => out.line(depth, "typha: {enabled: false}"),
            (0, false) => {}
            (replicas, _) => out.line(depth, format!("typha: {{enabled: true, replicas: {replicas}}}")),
        }
        let controllers = cluster.answers.replicas_of("calico-kube-controllers-");
        if controllers > 1 {
            out.line(depth, format!("controller: {{replicas: {controllers}}}"));
        }
    });
}
