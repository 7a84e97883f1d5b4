//! The health of a member.

use kk_config::{Host, Spec};
use kk_connector::quote;
use kk_engine::{Facts, Question, question};

use crate::host_layout::{ETCD_CA, ETCD_CERTS};

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

/// Words that ask for the health of the member of this host, and trust this CA only.
pub(crate) fn with_ca(spec: &Spec, host: &Host, ca: &str) -> String {
    format!("{} --command-timeout 5s endpoint health", etcdctl_with(spec, host, ca))
}

/// Words that ask the member of this host, run there.
pub(super) fn etcdctl(spec: &Spec, host: &Host) -> String {
    etcdctl_with(spec, host, ETCD_CA)
}

fn etcdctl_with(spec: &Spec, host: &Host, ca: &str) -> String {
    let member = format!("{ETCD_CERTS}/member-{}", host.name);
    format!(
        "etcdctl --endpoints https://127.0.0.1:{port} --cacert {ca} --cert {cert} --key {key}",
        port = spec.etcd.port,
        cert = quote(&format!("{member}.pem")),
        key = quote(&format!("{member}-key.pem")),
    )
}
