//! The health of a member.

use kk_config::{Host, Spec};
use kk_connector::quote;
use kk_engine::{Facts, Question, question};

use crate::host_layout::ETCD_CERTS;

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
        quote(&format!("{ETCD_CERTS}/member-{}-key.pem", host.name)),
        etcdctl(spec, host)
    )
}

/// Words that ask the member of this host, run there.
pub(super) fn etcdctl(spec: &Spec, host: &Host) -> String {
    let member = format!("{ETCD_CERTS}/member-{}", host.name);
    format!(
        "etcdctl --endpoints https://127.0.0.1:{port} --cacert {ETCD_CERTS}/ca.pem --cert {cert} --key {key}",
        port = spec.etcd.port,
        cert = quote(&format!("{member}.pem")),
        key = quote(&format!("{member}-key.pem")),
    )
}
