//! Run kube-vip on control planes.

use kk_artifact::Component;
use kk_config::{Balancer, ControlPlaneEndpoint, Host};
use kk_engine::{
    Action, Facts, Task,
    actions::{Command, File, any_needed},
};
use serde_json::json;

use super::{
    super::in_turns::{Work, in_turns},
    MANIFEST, RESTART, STALE, interface_of, is_installed,
};
use crate::{
    base::{error::BuildError, shell::script},
    capabilities::control_plane,
    model::inputs::Inputs,
};

/// Runs after a control plane has joined. A changed manifest is written on one control plane first.
pub(super) fn task(inputs: &Inputs) -> Result<Task, BuildError> {
    let mut works = Vec::new();
    for (host, facts) in inputs.control_planes() {
        let file = File::text(MANIFEST, manifest(inputs, host, facts)?).mode(0o600);
        let actions: Vec<Box<dyn Action>> = vec![Box::new(file), Box::new(restart(inputs, host, facts))];
        let changes = any_needed(&actions, facts);
        let runs = is_installed(facts) && inputs.has_joined(host);
        works.push(Work { host, runs, changes, actions });
    }
    let task = Task::new("run_kube_vip", "Run kube-vip on control planes");
    Ok(in_turns(inputs, "kube-vip", task, works))
}

/// kube-vip reads its kubeconfig only when it starts. Without a restart, it would use an expired client certificate later.
fn restart(inputs: &Inputs, host: &Host, facts: &Facts) -> Command {
    let renewed = is_installed(facts) && control_plane::renews(inputs, host, facts, "admin.conf");
    let text = script(&[("node", &host.name)], RESTART);
    Command::new("restart kube-vip, which then reads its new kubeconfig", text)
        .when(move |facts| renewed || facts.answer(&STALE).answered() == Some(true))
}

fn manifest(inputs: &Inputs, host: &Host, facts: &Facts) -> Result<String, BuildError> {
    let endpoint = &inputs.spec.control_plane_endpoint;
    let Balancer::KubeVip(settings) = &endpoint.balancer else { unreachable!("the kind of this directory") };
    let interface = match &settings.bgp {
        // Packets for the address arrive by any interface.
        Some(_) => Some("lo".to_owned()),
        None => settings.interface.clone().or_else(|| interface_of(facts)),
    };
    // The address, the system, no password, and whether it is in another network.
    let peer =
        |peer: &kk_config::v1alpha2::BgpPeer| format!("{}:{}::{}", peer.address, peer.asn, peer.multihop);
    let bgp = settings.bgp.as_ref().map(|bgp| {
        let peers = bgp.peers.iter().map(peer).collect::<Vec<_>>().join(",");
        json!({"asn": bgp.asn, "peers": peers, "router": host.internal_address})
    });
    let mut env: Vec<(String, String)> =
        [("vip_leaseduration", "15"), ("vip_renewdeadline", "10"), ("vip_retryperiod", "2")]
            .into_iter()
            .filter(|(name, _)| !settings.env.contains_key(*name))
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .collect();
    env.extend(settings.env.clone());
    // JSON strings are YAML strings, whatever a value contains.
    let quoted = |text: &str| json!(text).to_string();
    let env: Vec<_> =
        env.iter().map(|(name, value)| json!({"name": quoted(name), "value": quoted(value)})).collect();
    let values = json!({
        "image": inputs.images.of(Component::KubeVip),
        "address": endpoint.address,
        "port": ControlPlaneEndpoint::API_SERVER_PORT,
        "node": host.name,
        "interface": quoted(&interface.unwrap_or_default()),
        "bgp": bgp,
        "env": env,
    });
    Ok(inputs.templates.render("balancer/kube-vip.yaml", &values)?)
}
