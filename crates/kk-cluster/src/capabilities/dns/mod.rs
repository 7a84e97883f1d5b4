//! CoreDNS, from kk's own manifest.

use kk_config::Host;
use serde_json::json;

use crate::{
    BuildError,
    capability::Capability,
    findings::Findings,
    inputs::Inputs,
    requirements::{ImageStage, Manifest, Ready},
};

/// The DNS of the cluster.
pub(crate) struct Dns;

impl Capability for Dns {
    fn name(&self) -> &'static str {
        "dns"
    }

    fn images(&self, inputs: &Inputs, host: &Host) -> Vec<(ImageStage, String)> {
        if host.is_node() { vec![(ImageStage::Addon, inputs.images.coredns())] } else { Vec::new() }
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
        }
    }

    fn manifests(&self, inputs: &Inputs) -> Result<Vec<Manifest>, BuildError> {
        let text = inputs.templates.render("dns/coredns.yaml", &values(inputs))?;
        Ok(vec![Manifest {
            name: "coredns",
            note: text.clone(),
            file: text,
            workload: "kube-system/coredns",
            command: None,
        }])
    }

    fn ready(&self, _inputs: &Inputs) -> Vec<Ready> {
        vec![Ready::Workload { namespace: "kube-system", workload: "deployment/coredns" }]
    }
}

fn values(inputs: &Inputs) -> serde_json::Value {
    let dns = &inputs.spec.dns;
    let forward = if !dns.upstream_servers.is_empty() {
        dns.upstream_servers.join(" ")
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
        "additional": dns.coredns_additional_configs.lines().collect::<Vec<_>>(),
        "replicas": inputs.spec.nodes().len().min(2),
        "image": inputs.images.coredns(),
    })
}
