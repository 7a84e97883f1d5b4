//! Moves control planes that have another address, or whose etcd has another address.

use kk_config::Host;
use kk_engine::{Action, Facts, actions::Command};

use crate::{
    base::{
        error::BuildError,
        findings::Findings,
        questions::{SETTINGS, etcd_servers},
        shell::script,
    },
    capabilities::{etcd, kubelet},
    model::inputs::Inputs,
};

/// The flag of the API server that specifies its address.
const FLAG: &str = "advertise-address";

/// The previous address of the API server of a host, if the file sets another address.
pub(crate) fn from(inputs: &Inputs, host: &Host, facts: &Facts) -> Option<String> {
    if inputs.spec.kubernetes.apiserver_args.contains_key(FLAG) {
        return None;
    }
    let there = facts.answer(&SETTINGS).answered()?.remove(FLAG)?;
    (there != host.internal_address.to_string()).then_some(there)
}

/// Whether an API server connects to the previous address of an etcd member.
fn looks_for_etcd_of_before(inputs: &Inputs, facts: &Facts) -> bool {
    etcd_servers(facts).is_some_and(|servers| etcd_of_before(inputs).iter().any(|one| servers.contains(one)))
}

/// The previous addresses of etcd members that move.
pub(super) fn etcd_of_before(inputs: &Inputs) -> Vec<String> {
    let of = |from: String| format!("https://{from}:{}", inputs.spec.etcd.port);
    etcd::moves::all(inputs).into_iter().flat_map(|(_, from)| from).map(of).collect()
}

/// Why the API server of a host must be changed before the API can be queried at all.
pub(super) fn why(inputs: &Inputs, host: &Host, facts: &Facts) -> Option<String> {
    let moved = from(inputs, host, facts).map(|from| format!("is for {from}"));
    let stranded = !inputs.state.answered && looks_for_etcd_of_before(inputs, facts);
    moved.or_else(|| {
        stranded.then(|| {
            "belongs to an API server that connects to the previous address of \
                                       etcd"
                .to_owned()
        })
    })
}

/// Moves the kubelet of the host before the components of the control plane, so that it gives their pods the new address. The
/// kubelet uses the API server of its own host (kubeadm's feature `ControlPlaneKubeletLocalMode`).
pub(super) fn follow(
    inputs: &Inputs,
    host: &Host,
    facts: &Facts,
) -> Result<Vec<Box<dyn Action>>, BuildError> {
    let Some(from) = from(inputs, host, facts) else { return Ok(Vec::new()) };
    let to = host.internal_address.to_string();
    let variables = [("from", from.replace('.', r"\.")), ("to", to)];
    let variables: Vec<_> = variables.iter().map(|(name, value)| (*name, value.as_str())).collect();
    let text = script(&variables, include_str!("follow_api_server.sh"));
    let mut actions = kubelet::files(inputs, host)?;
    actions.push(Box::new(Command::new("point the kubelet to the new address of the API server", text)));
    Ok(actions)
}

pub(super) fn findings(inputs: &Inputs, found: &mut Findings) {
    for (host, facts) in inputs.control_planes() {
        let Some(from) = from(inputs, host, facts) else { continue };
        let to = host.internal_address;
        if inputs.command.may_move() {
            let hint = "its static pods restart, one control plane after the other";
            found.adapted(host, format!("the control plane moves from {from} to {to}"), hint);
        } else {
            found.error(
                host,
                format!("the control plane is at {from}, but the file sets {to}"),
                etcd::moves::FIRST,
            );
        }
    }
}
