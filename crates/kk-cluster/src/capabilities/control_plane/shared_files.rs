//! Finds files below `/etc/kubernetes/pki` that all control planes share: which of them a control plane has lost, and which other
//! one has them.
//!
//! A running component has read them at its start, so that nothing shows the loss before the next start. Then the API server does
//! not start.

use kk_config::Host;
use kk_engine::Facts;

use super::renewal::{LEAVES, can_sign, sum};
use crate::{
    base::{cluster_state::INITIALISED, findings::Findings},
    model::inputs::Inputs,
};

const PKI: &str = "/etc/kubernetes/pki";

/// Files that are copied to a control plane that lacks one of them. The keys of CAs are not among them, because users may keep
/// them elsewhere.
pub(super) const SHARED: [&str; 3] = ["sa.key", "sa.pub", "front-proxy-ca.crt"];
/// Files that a joining control plane gets.
pub(super) const FOR_JOINS: [&str; 6] =
    ["ca.crt", "ca.key", "sa.pub", "sa.key", "front-proxy-ca.crt", "front-proxy-ca.key"];
const CA_KEYS: [&str; 2] = ["ca.key", "front-proxy-ca.key"];

fn has_all(facts: &Facts, names: &[&str]) -> bool {
    names.iter().all(|name| sum(facts, name).is_some())
}

fn lacks(facts: &Facts, names: &[&'static str]) -> Vec<&'static str> {
    names.iter().copied().filter(|name| sum(facts, name).is_none()).collect()
}

/// Whether the host is a control plane of the cluster, and thus shares these files.
pub(super) fn takes_part(inputs: &Inputs, host: &Host) -> bool {
    let is_initialised = |facts: &Facts| facts.answer(&INITIALISED).answered() == Some(true);
    inputs.facts(host).is_some_and(is_initialised) && inputs.has_joined(host)
}

/// Control planes that answered and share these files, including control planes that this command leaves as they are.
fn all<'a>(inputs: &Inputs<'a>) -> Vec<(&'a Host, &'a Facts)> {
    let control_planes = inputs.spec.control_planes().into_iter();
    let there = control_planes.filter(|host| takes_part(inputs, host));
    there.filter_map(|host| Some((host, inputs.facts(host)?))).collect()
}

/// The control plane from which others get files that they lack. `None` if control planes have different files, because kk cannot
/// know which files are right.
pub(super) fn source<'a>(inputs: &Inputs<'a>) -> Option<&'a Host> {
    let whole: Vec<_> = all(inputs).into_iter().filter(|(_, facts)| has_all(facts, &SHARED)).collect();
    let (host, first) = *whole.first()?;
    let is_same =
        |(_, facts): &(&Host, &Facts)| SHARED.iter().all(|name| sum(facts, name) == sum(first, name));
    whole.iter().all(is_same).then_some(host)
}

/// Files that a control plane of this run has lost and gets again, provided that its remaining files are the same as at the
/// source.
pub(super) fn lost(inputs: &Inputs, host: &Host, facts: &Facts) -> Vec<&'static str> {
    let lacks = if takes_part(inputs, host) { lacks(facts, &SHARED) } else { Vec::new() };
    let Some(of_source) = source(inputs).and_then(|source| inputs.facts(source)) else { return Vec::new() };
    let differs = |name: &&str| sum(facts, name).is_some_and(|own| Some(own) != sum(of_source, name));
    if SHARED.iter().any(differs) { Vec::new() } else { lacks }
}

/// The control plane whose files joining control planes get: where the API is queried, or another control plane with all files.
pub(super) fn source_for_joins<'a>(inputs: &Inputs<'a>) -> &'a Host {
    let whole: Vec<&Host> = all(inputs)
        .into_iter()
        .filter(|(_, facts)| has_all(facts, &FOR_JOINS))
        .map(|(host, _)| host)
        .collect();
    let is_first = |host: &&&Host| host.name == inputs.api_host.name;
    whole.iter().find(is_first).or(whole.first()).copied().unwrap_or(inputs.api_host)
}

pub(super) fn findings(inputs: &Inputs, found: &mut Findings) {
    different(inputs, found);
    for (host, facts) in inputs.control_planes().into_iter().filter(|(host, _)| takes_part(inputs, host)) {
        let lacks_shared = lacks(facts, &SHARED);
        let copied = lost(inputs, host, facts);
        if let Some(source) = source(inputs).filter(|_| !copied.is_empty()) {
            found.adapted(
                host,
                format!("missing or empty in {PKI}: {}", copied.join(", ")),
                format!("copied from {}", source.name),
            );
        } else if !lacks_shared.is_empty() {
            found.error(
                host,
                format!(
                    "missing or empty in {PKI}: {}, and no control plane that answered has all of {} with \
                     the same content as the files here",
                    lacks_shared.join(", "),
                    SHARED.join(", ")
                ),
                hint(&lacks_shared),
            );
        }
        ca_keys(inputs, host, facts, found);
    }
    let source = source_for_joins(inputs);
    let joins = inputs.joining().into_iter().any(|host| host.has_role(&kk_config::Role::ControlPlane));
    let lacking =
        inputs.facts(source).filter(|_| takes_part(inputs, source)).map(|facts| lacks(facts, &FOR_JOINS));
    if let Some(lacking) = lacking.filter(|lacking| joins && !lacking.is_empty()) {
        found.error(
            source,
            format!(
                "a control plane is to join, but no existing control plane has all of {}",
                FOR_JOINS.join(", ")
            ),
            format!("copy {} to {PKI} on this host until it has joined", lacking.join(", ")),
        );
    }
}

/// Reports keys of CAs that are lost or kept elsewhere. A renewal that was requested and is not possible is an error.
fn ca_keys(inputs: &Inputs, host: &Host, facts: &Facts, found: &mut Findings) {
    let keys = lacks(facts, &CA_KEYS);
    if keys.is_empty() {
        return;
    }
    let renewed = inputs.command.renewed();
    let cannot = |name: &&String| LEAVES.contains(&name.as_str()) && !can_sign(facts, name);
    let asked: Vec<&str> = renewed.iter().filter(cannot).map(String::as_str).collect();
    let message = format!("missing or empty in {PKI}: {}", keys.join(", "));
    if asked.is_empty() {
        let lacks = if keys.contains(&"ca.key") {
            "certificates of this control plane are not renewed, and nodes may not join"
        } else {
            "front-proxy-client is not renewed here"
        };
        found.warning(
            host,
            message,
            format!("{lacks}; copy it from another control plane, unless it is kept elsewhere on purpose"),
        );
    } else {
        found.error(
            host,
            format!("{message}; so {} cannot be renewed", asked.join(", ")),
            "copy it there for the renewal, or renew the certificate where the key is kept",
        );
    }
}

fn hint(lacks: &[&str]) -> String {
    if lacks == ["sa.pub"] {
        return format!("on the host: openssl pkey -in {PKI}/sa.key -pubout -out {PKI}/sa.pub");
    }
    let mut hint = "restore it from a backup, or start a control plane that has it".to_owned();
    if lacks.contains(&"sa.key") {
        hint += "; if neither exists, remove sa.key and sa.pub there and create a new pair with \"kubeadm \
                 init phase certs sa\": this invalidates all service account tokens, so pods must be \
                 restarted";
    }
    hint
}

/// Reports different files: a token that one control plane has signed is refused by another one.
fn different(inputs: &Inputs, found: &mut Findings) {
    let all = all(inputs);
    for name in SHARED {
        let sums: std::collections::BTreeSet<&str> =
            all.iter().filter_map(|(_, facts)| sum(facts, name)).collect();
        if sums.len() > 1 {
            let hosts: Vec<&str> = all
                .iter()
                .filter(|(_, facts)| sum(facts, name).is_some())
                .map(|(host, _)| host.name.as_str())
                .collect();
            found.warning(
                None,
                format!("{PKI}/{name} differs between {}", hosts.join(", ")),
                "one control plane refuses tokens that another one signed: copy the right file to all \
                 control planes, and restart their API servers",
            );
        }
    }
}
