//! The health of a member.

use kk_config::{Host, Spec};
use kk_connector::quote;
use kk_engine::{Facts, Question, question};

use super::etcdctl::{ask_member, ask_member_with, ask_members, certificate};

/// Whether the member of this host has a leader and commits.
pub(crate) const HEALTHY: Question<bool> = Question::new("etcd_healthy", "echo no", question::yes_or_no);

/// Whether the member of this host was healthy at the time of the probe.
pub(super) fn is_healthy(facts: &Facts) -> bool {
    facts.answer(&HEALTHY).answered() == Some(true)
}

/// The question for one host.
pub(super) fn question(spec: &Spec, host: &Host) -> Question<bool> {
    HEALTHY.with_snippet(format!("{} >/dev/null && echo yes || echo no", command(spec, host)))
}

/// Succeeds, and prints `healthy`, when the member of this host has a leader and commits.
pub(super) fn command(spec: &Spec, host: &Host) -> String {
    format!(
        "[ -e {} ] && {} --command-timeout 2s endpoint health >/dev/null && echo healthy",
        quote(&format!("{}-key.pem", certificate(host))),
        ask_member(spec, host)
    )
}

/// Succeeds, run on this host, when all other members are healthy; `None` where there is no other.
pub(super) fn of_others(spec: &Spec, host: &Host) -> Option<String> {
    let others = spec.etcd_hosts().into_iter().filter(|other| other.name != host.name);
    let endpoints: Vec<_> =
        others.map(|other| format!("https://{}:{}", other.internal_address, spec.etcd.port)).collect();
    let ask = ask_members(&endpoints.join(","), host);
    (!endpoints.is_empty()).then(|| format!("{ask} --command-timeout 5s endpoint health >/dev/null"))
}

/// Words that ask for the health of the member of this host, and trust this CA only.
pub(crate) fn with_ca(spec: &Spec, host: &Host, ca: &str) -> String {
    format!("{} --command-timeout 5s endpoint health", ask_member_with(spec, host, ca))
}
