//! CoreDNS, from kk's own manifest.

use kk_artifact::Component;
use kk_config::Host;
use kk_engine::{Facts, ProbeSpec};
use serde_json::json;

use crate::{
    BuildError,
    capabilities::{manifests::from_template, network},
    capability::Capability,
    findings::Findings,
    inputs::Inputs,
    requirements::{ImageStage, Manifest, Ready, Workload},
};

/// Where it is active, `/etc/resolv.conf` names its address on the host.
const RESOLVED: &str = "systemd-resolved.service";

/// The DNS of the cluster.
pub(crate) struct Dns;

impl Capability for Dns {
    fn name(&self) -> &'static str {
        "dns"
    }

    fn images(&self, inputs: &Inputs, host: &Host) -> Vec<(ImageStage, String)> {
        if host.is_node() {
            vec![(ImageStage::Addon, inputs.images.of(Component::Coredns))]
        } else {
            Vec::new()
        }
    }

    /// Of a DNS cache that users add to each node.
    fn interfaces(&self) -> &'static [&'static str] {
        &["nodelocaldns"]
    }

    fn asks(&self, _inputs: &Inputs, _host: &Host, probe: &mut ProbeSpec) {
        probe.units.insert(RESOLVED.to_owned());
    }

    fn findings(&self, inputs: &Inputs, found: &mut Findings) {
        for (host, facts) in inputs.nodes() {
            if facts.nameservers.is_empty() {
                found.adapted(
                    host,
                    "no nameserver in /etc/resolv.conf",
                    "CoreDNS is set up without forwarding: names outside the cluster do not resolve in pods",
                );
            }
            if loops(inputs, facts) {
                found.error(
                    host,
                    format!("/etc/resolv.conf names a resolver on the host itself: {}", facts.nameservers.join(", ")),
                    "in a pod that address is the pod's own, so CoreDNS would ask itself: set spec.dns.coredns.upstreamDNSServers",
                );
            }
        }
    }

    fn manifests(&self, inputs: &Inputs) -> Result<Vec<Manifest>, BuildError> {
        let mut manifest = from_template(inputs, "coredns", "dns/coredns.yaml", &values(inputs))?;
        if !inputs.is_initialised() && nodes_become_ready(inputs) {
            manifest.command = Some(include_str!("apply_coredns.sh"));
        }
        Ok(vec![manifest])
    }

    fn ready(&self, _inputs: &Inputs) -> Vec<Ready> {
        vec![Ready::Workload(Workload {
            namespace: "kube-system",
            path: "deployment/coredns",
            metrics: Some(9153),
        })]
    }
}

/// Not where the user installs the network.
fn nodes_become_ready(inputs: &Inputs) -> bool {
    let network = network::capability(inputs.spec).ready(inputs);
    !network.iter().any(|ready| matches!(ready, Ready::Never(_)))
}

/// Whether this CoreDNS knows `disable` in `cache`: from 1.10.0 on (coredns/coredns#5540). One before does not start with it.
fn can_except_from_cache(version: &str) -> bool {
    let mut numbers = version.split('.').map_while(|number| number.parse::<u32>().ok());
    (numbers.next(), numbers.next()) >= (Some(1), Some(10))
}

/// Whether CoreDNS on this node would forward to itself. With systemd-resolved kubeadm gives pods its list of real servers.
fn loops(inputs: &Inputs, facts: &Facts) -> bool {
    let is_local =
        |server: &String| server.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback());
    inputs.spec.dns.coredns.upstream_dns_servers.is_empty()
        && !inputs.spec.kubernetes.kubelet_configuration.contains_key("resolvConf")
        && !facts.units.get(RESOLVED).is_some_and(|unit| unit.active)
        && facts.nameservers.iter().any(is_local)
}

fn values(inputs: &Inputs) -> serde_json::Value {
    let settings = &inputs.spec.dns.coredns;
    let forward = if !settings.upstream_dns_servers.is_empty() {
        settings.upstream_dns_servers.join(" ")
    } else if inputs.any_node(|facts| facts.nameservers.is_empty()) {
        // CoreDNS ends at once when it forwards to a list that is empty.
        String::new()
    } else {
        "/etc/resolv.conf".to_owned()
    };
    json!({
        "dns_domain": inputs.spec.kubernetes.dns_domain,
        "dns_address": inputs.spec.network.dns_service_address(),
        "forward": forward,
        "cluster_is_cached": !can_except_from_cache(&inputs.versions.of(Component::Coredns)),
        "additional": settings.additional_configs.lines().collect::<Vec<_>>(),
        "replicas": inputs.spec.nodes().len().min(2),
        "image": inputs.images.of(Component::Coredns),
    })
}

#[cfg(test)]
mod tests {
    use std::fs;

    use kk_config::NetworkPlugin;

    use super::Dns;
    use crate::{capability::Capability as _, cluster_state::INITIALISED, testing};

    /// Runs the script beside an API with these taints, each look less of them. What was asked of it.
    fn apply(taints: &str) -> (bool, Vec<String>) {
        let directory = tempfile::tempdir().unwrap();
        fs::write(directory.path().join("taints"), taints).unwrap();
        let kubectl =
            "echo \"$1\" >>asked; case $1 in wait) exit 1 ;; get) cat taints; sed -i 1d taints ;; esac";
        testing::program(directory.path(), "kubectl", kubectl);
        testing::program(directory.path(), "sleep", "exit 0");
        // A clock of the test: 20 s a look.
        let library = "kk_uptime() { echo . >>ticks; echo $(($(wc -l <ticks) * 20)); }";
        let text = format!("{library}\n{}", include_str!("apply_coredns.sh"));
        let output = testing::run_script(directory.path(), &text);
        let asked = fs::read_to_string(directory.path().join("asked")).unwrap();
        (output.status.success(), asked.lines().map(str::to_owned).collect())
    }

    #[test]
    fn pods_of_coredns_come_when_nodes_take_them_or_after_a_minute() {
        let (taint, other) = ("node.kubernetes.io/not-ready\n", "node-role.kubernetes.io/control-plane\n");
        for (taints, looks) in
            [(String::new(), 1), (other.to_owned(), 1), (taint.to_owned(), 2), (taint.repeat(9), 3)]
        {
            let (ok, asked) = apply(&taints);
            let wanted: Vec<&str> = [vec!["wait"], vec!["get"; looks], vec!["apply"]].concat();
            assert_eq!((ok, asked), (true, wanted.into_iter().map(str::to_owned).collect()), "{taints}");
        }
    }

    #[tokio::test]
    async fn only_a_new_cluster_with_a_network_waits_for_nodes_before_coredns() {
        for (initialised, network, waits) in [("no", true, true), ("yes", true, false), ("no", false, false)]
        {
            let mut spec = testing::sample("all-in-one.yaml");
            if !network {
                spec.network.plugin = NetworkPlugin::None;
            }
            let (mut probed, directory) = (testing::fresh(&spec), tempfile::tempdir().unwrap());
            probed.facts.values_mut().for_each(|facts| facts.reply(&INITIALISED, initialised));
            let session = testing::session(spec.clone(), directory.path());
            let inputs = session.create_inputs(&probed).await.unwrap();
            let manifests = Dns.manifests(&inputs).unwrap();
            assert_eq!(manifests[0].command.is_some(), waits, "{initialised} {network}");
        }
    }

    #[tokio::test]
    async fn names_of_the_cluster_are_not_cached_where_coredns_can_do_that() {
        for (pinned, excepted) in [(None, true), (Some("v1.10.0"), true), (Some("v1.9.3"), false)] {
            let mut spec = testing::sample("all-in-one.yaml");
            spec.kubernetes.dns_domain = "lab.local".into();
            spec.components.coredns = pinned.map(str::to_owned);
            let (probed, directory) = (testing::fresh(&spec), tempfile::tempdir().unwrap());
            let session = testing::session(spec, directory.path());
            let inputs = session.create_inputs(&probed).await.unwrap();
            let text = Dns.manifests(&inputs).unwrap().remove(0).file;
            for line in ["disable success lab.local\n", "disable denial lab.local\n"] {
                assert_eq!(text.contains(line), excepted, "{pinned:?}: {text}");
            }
            assert_eq!(text.contains("        cache 30\n"), !excepted, "{pinned:?}: {text}");
        }
    }
}
