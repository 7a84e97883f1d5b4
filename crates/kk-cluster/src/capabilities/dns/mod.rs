//! Installs CoreDNS from kk's own manifest.

use kk_artifact::Component;
use kk_config::{Host, Role};
use kk_engine::{Facts, ProbeSpec, Question, question};
use serde_json::json;

use crate::{
    base::{
        error::BuildError,
        findings::Findings,
        requirements::{ImageStage, Manifest, Ready, Workload, never_ready},
    },
    capabilities::{manifests::from_template, network},
    model::{
        capability::{Capability, Stage},
        cluster::Cluster,
        inputs::Inputs,
    },
};

/// If systemd-resolved is active, `/etc/resolv.conf` contains its address on the host.
const RESOLVED: &str = "systemd-resolved.service";

/// Whether the CoreDNS that was last applied forwards to the nameservers of its node. The control plane at which it was applied
/// keeps a copy of the manifest.
const FORWARDS: Question<bool> = Question::new(
    "coredns_forwards",
    "if grep -qs '^ *forward [.] /etc/resolv[.]conf' /etc/kubernetes/kubekey/coredns.yaml; then echo yes; else echo no; fi",
    question::yes_or_no,
);

/// The DNS of the cluster.
pub(crate) struct Dns;

impl Capability for Dns {
    fn name(&self) -> &'static str {
        "dns"
    }

    fn stage(&self) -> Stage {
        Stage::AddOns
    }

    fn images(&self, cluster: &Cluster, host: &Host) -> Vec<(ImageStage, String)> {
        if host.is_node() {
            vec![(ImageStage::Addon, cluster.images.of(Component::Coredns))]
        } else {
            Vec::new()
        }
    }

    /// The interface of a DNS cache that users can add to each node.
    fn interfaces(&self) -> &'static [&'static str] {
        &["nodelocaldns"]
    }

    fn asks(&self, _inputs: &Inputs, host: &Host, probe: &mut ProbeSpec) {
        probe.units.insert(RESOLVED.to_owned());
        if host.has_role(&Role::ControlPlane) {
            probe.ask(&FORWARDS);
        }
    }

    fn findings(&self, inputs: &Inputs, found: &mut Findings) {
        for (host, facts) in inputs.nodes() {
            if facts.nameservers.is_empty() && reads_resolv_conf(inputs) {
                let message = "no nameserver in /etc/resolv.conf";
                if forwards(inputs) {
                    found.error(
                        host,
                        message,
                        "CoreDNS forwards to the nameservers of its node and does not start on this one: add a nameserver, or set \
                         spec.dns.coredns.upstreamDNSServers",
                    );
                } else {
                    found.adapted(
                        host,
                        message,
                        "CoreDNS is set up without forwarding: names outside the cluster do not resolve in pods",
                    );
                }
            }
            if loops(inputs, facts) {
                found.error(
                    host,
                    format!(
                        "/etc/resolv.conf names a resolver on the host itself: {}",
                        facts.nameservers.join(", ")
                    ),
                    "in a pod this address belongs to the pod itself, so CoreDNS would query itself: set \
                     spec.dns.coredns.upstreamDNSServers",
                );
            }
        }
    }

    fn manifests(&self, cluster: &Cluster) -> Result<Vec<Manifest>, BuildError> {
        let least = cluster.spec.nodes().len().min(2);
        let mut manifest = from_template(cluster, "coredns", "dns/coredns.yaml", &values(cluster, least))?;
        // kk keeps additional replicas and does not record them: only a changed file is a reason to apply the manifest again.
        let there =
            cluster.state.workloads.get("kube-system/coredns").map_or(0, |(wanted, _)| *wanted as usize);
        if there > least {
            manifest.file = cluster.templates.render("dns/coredns.yaml", &values(cluster, there))?;
        }
        if !cluster.is_initialised() && nodes_become_ready(cluster) {
            manifest.command = Some(include_str!("apply_coredns.sh"));
        }
        Ok(vec![manifest])
    }

    fn ready(&self, _cluster: &Cluster) -> Vec<Ready> {
        vec![Ready::Workload(Workload {
            namespace: "kube-system",
            path: "deployment/coredns",
            metrics: Some(9153),
        })]
    }
}

/// Whether nodes become Ready in this run, which they do not if the user installs the network.
fn nodes_become_ready(cluster: &Cluster) -> bool {
    never_ready(&network::capability(cluster.spec).ready(cluster)).is_none()
}

/// Whether this version of CoreDNS supports `disable` in `cache`: from 1.10.0 on (coredns/coredns#5540). Older versions do not
/// start with it.
fn can_except_from_cache(version: &str) -> bool {
    let mut numbers = version.split('.').map_while(|number| number.parse::<u32>().ok());
    (numbers.next(), numbers.next()) >= (Some(1), Some(10))
}

/// Whether CoreDNS on this node would forward to itself. With systemd-resolved, kubeadm gives pods the list of its upstream
/// servers.
fn loops(cluster: &Cluster, facts: &Facts) -> bool {
    let is_local =
        |server: &String| server.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback());
    reads_resolv_conf(cluster)
        && !facts.units.get(RESOLVED).is_some_and(|unit| unit.active)
        && facts.nameservers.iter().any(is_local)
}

/// Whether CoreDNS reads its nameservers from `/etc/resolv.conf` of its node.
fn reads_resolv_conf(cluster: &Cluster) -> bool {
    cluster.spec.dns.coredns.upstream_dns_servers.is_empty()
        && !cluster.spec.kubernetes.kubelet_configuration.contains_key("resolvConf")
}

/// Whether CoreDNS forwards to the nameservers of its node. A running cluster keeps forwarding: if the file is empty for a moment
/// on any host, pods must still resolve names outside the cluster.
fn forwards(cluster: &Cluster) -> bool {
    let applied = || cluster.facts(cluster.api_host).and_then(|facts| facts.answer(&FORWARDS).answered());
    !reads_resolv_conf(cluster)
        || cluster.any_node(|facts| !facts.nameservers.is_empty())
        || applied() == Some(true)
}

fn values(cluster: &Cluster, replicas: usize) -> serde_json::Value {
    let settings = &cluster.spec.dns.coredns;
    let forward = if !settings.upstream_dns_servers.is_empty() {
        settings.upstream_dns_servers.join(" ")
    } else if forwards(cluster) {
        "/etc/resolv.conf".to_owned()
    } else {
        // CoreDNS exits at once if it forwards to an empty list.
        String::new()
    };
    json!({
        "dns_domain": cluster.spec.kubernetes.dns_domain,
        "dns_address": cluster.spec.network.dns_service_address(),
        "forward": forward,
        "cluster_is_cached": !can_except_from_cache(&cluster.versions.of(Component::Coredns)),
        "additional": settings.additional_configs.lines().collect::<Vec<_>>(),
        "replicas": replicas,
        "image": cluster.images.of(Component::Coredns),
    })
}

#[cfg(test)]
mod tests {
    use std::fs;

    use kk_config::NetworkPlugin;
    use kk_engine::Severity;

    use super::{Dns, FORWARDS};
    use crate::{
        base::{
            cluster_state::{API, INITIALISED},
            findings::Findings,
        },
        model::capability::Capability as _,
        testing,
    };

    /// Runs the script with an API that reports these taints, one line less at each query. Returns whether it succeeds, and the
    /// queries.
    fn apply(taints: &str) -> (bool, Vec<String>) {
        let directory = tempfile::tempdir().unwrap();
        fs::write(directory.path().join("taints"), taints).unwrap();
        let kubectl =
            "echo \"$1\" >>asked; case $1 in wait) exit 1 ;; get) cat taints; sed -i 1d taints ;; esac";
        testing::program(directory.path(), "kubectl", kubectl);
        testing::program(directory.path(), "sleep", "exit 0");
        // The clock of the test, which advances 20 s at each query.
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

    /// Cases: how many of the three nodes have no nameservers, whether the CoreDNS of a running cluster forwards, and whether the
    /// file sets nameservers.
    #[tokio::test]
    async fn coredns_forwards_while_any_node_has_nameservers_and_a_running_one_goes_on() {
        let (error, adapted) = (Some(Severity::Error), Some(Severity::Adapted));
        for (empty, applied, upstream, forward, said) in [
            (0, "no", false, Some("/etc/resolv.conf"), None),
            (1, "no", false, Some("/etc/resolv.conf"), error),
            (1, "yes", false, Some("/etc/resolv.conf"), error),
            (3, "no", false, None, adapted),
            (3, "yes", false, Some("/etc/resolv.conf"), error),
            (3, "yes", true, Some("192.0.2.53"), None),
        ] {
            let mut spec = testing::sample("three-nodes.yaml");
            spec.dns.coredns.upstream_dns_servers =
                if upstream { vec!["192.0.2.53".to_owned()] } else { Vec::new() };
            let (mut probed, directory) = (testing::fresh(&spec), tempfile::tempdir().unwrap());
            // The control plane is the first host of the file, so it loses its nameservers last.
            for (number, host) in spec.hosts.iter().rev().enumerate() {
                let facts = probed.facts.get_mut(&host.name).unwrap();
                facts.reply(&FORWARDS, applied);
                if number < empty {
                    facts.nameservers.clear();
                }
            }
            let session = testing::session(spec, directory.path());
            let inputs = session.create_inputs(&probed).await.unwrap();
            let text = Dns.manifests(&inputs).unwrap().remove(0).file;
            let line = text.lines().find_map(|line| line.trim().strip_prefix("forward . "));
            let to = line.map(|line| line.trim_end_matches(" {"));
            assert_eq!(to, forward, "{empty} {applied} {upstream}");
            let mut found = Findings::default();
            Dns.findings(&inputs, &mut found);
            assert_eq!(found.0.len(), if said.is_some() { empty } else { 0 }, "{:?}", found.0);
            assert!(found.0.iter().all(|one| Some(one.severity) == said), "{:?}", found.0);
        }
    }

    #[test]
    fn a_control_plane_says_whether_the_coredns_that_was_applied_forwards_to_its_node() {
        for (manifest, forwards) in [
            (Some("        forward . /etc/resolv.conf {\n"), "yes\n"),
            (Some("        forward . 192.0.2.53 {\n"), "no\n"),
            (None, "no\n"),
        ] {
            let directory = tempfile::tempdir().unwrap();
            let path = directory.path().join("coredns.yaml");
            if let Some(manifest) = manifest {
                fs::write(&path, manifest).unwrap();
            }
            let mut probe = kk_engine::ProbeSpec::default();
            probe.ask(&FORWARDS);
            let snippet = &probe.questions.values().next().unwrap().snippet;
            let snippet = snippet.replace("/etc/kubernetes/kubekey/coredns.yaml", path.to_str().unwrap());
            let output = testing::run_script(directory.path(), &snippet);
            assert_eq!(String::from_utf8(output.stdout).unwrap(), forwards, "{manifest:?}");
        }
    }

    /// An administrator has scaled CoreDNS: another version or setting must not remove these replicas.
    #[tokio::test]
    async fn more_replicas_of_coredns_are_kept_and_are_no_reason_to_apply_it() {
        let spec = testing::sample("three-nodes.yaml");
        let session_in = tempfile::tempdir().unwrap();
        let session = testing::session(spec.clone(), session_in.path());
        let mut notes = Vec::new();
        for (there, kept) in [(0, 2), (1, 2), (2, 2), (8, 8)] {
            let mut probed = testing::fresh(&spec);
            let facts = probed.facts.get_mut(&spec.first_control_plane().name).unwrap();
            facts.reply(&INITIALISED, "yes");
            facts.reply(&API, format!("Deployment\tkube-system/coredns\t{there}\t{there}\nend\n"));
            let inputs = session.create_inputs(&probed).await.unwrap();
            let manifest = Dns.manifests(&inputs).unwrap().remove(0);
            assert!(manifest.file.contains(&format!("\n  replicas: {kept}\n")), "{there}");
            notes.push(manifest.note);
        }
        notes.dedup();
        assert_eq!(notes.len(), 1);
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
