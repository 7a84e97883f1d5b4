//! Checks what is already on the hosts of etcd, and whether it belongs to this cluster.

use std::collections::BTreeSet;

use kk_config::{Host, Spec};
use kk_connector::quote;
use kk_engine::{Facts, ProbeSpec, Question, question};
use time::OffsetDateTime;

use super::{files::MOUNT_NOTE, immutable::ENVIRONMENT, moves};
use crate::{
    base::{
        certificates::Age,
        findings::Findings,
        host_layout::{ETCD_CA, ETCD_ENVIRONMENT, is_masked},
    },
    model::inputs::Inputs,
};

/// The unit of etcd.
pub(crate) const UNIT: &str = "/etc/systemd/system/etcd.service";

/// Whether a member has data on the host.
pub(crate) const DATA: Question<bool> = Question::new("etcd_data", "echo no", question::yes_or_no);

pub(super) fn asks(spec: &Spec, probe: &mut ProbeSpec) {
    probe.files.extend([ETCD_CA, moves::MARK, MOUNT_NOTE].map(str::to_owned));
    probe.units.insert("etcd.service".to_owned());
    probe.disks.insert(spec.etcd.data_dir.clone());
    let data = quote(&spec.etcd.data_dir).into_owned();
    probe.ask(&ENVIRONMENT);
    probe.ask(&DATA.with_snippet(format!("[ -d {data}/member ] && echo yes || echo no")));
}

/// Running members must not get certificates of another CA, because they would no longer trust each other.
pub(super) fn findings(inputs: &Inputs, found: &mut Findings) {
    let mut hosts = inputs.etcd_hosts();
    // The check of host identities reports hosts of other clusters, with another hint.
    hosts.retain(|(_, facts)| facts.owned.identity().is_none_or(|of| of.cluster == inputs.spec.name));
    let cas: BTreeSet<&str> =
        hosts.iter().filter_map(|(_, facts)| Some(facts.files.get(ETCD_CA)?.sha256.as_str())).collect();
    if cas.len() > 1 {
        found.error(
            None,
            "the etcd hosts have certificates of different clusters",
            "remove the other cluster from its hosts first",
        );
    } else if cas.first().is_some_and(|ca| *ca != inputs.pki.ca_sum()) {
        found.error(
            None,
            "the CA of the etcd on these hosts is not on the control machine",
            format!(
                "run where the cluster was created, or copy its directory kubekey/{}/pki from there; to start again, delete the cluster first",
                inputs.spec.name
            ),
        );
    }
    certificates(inputs, found);
    for (host, facts) in hosts {
        found.unanswered(host, &facts.answer(&DATA), "whether etcd has data on it");
        found.unanswered(host, &facts.answer(&ENVIRONMENT), "how its etcd is configured");
        other_etcd(inputs, host, facts, found);
    }
}

/// Reports another etcd on a host: the member would replace it, and nothing would start it again after a delete.
fn other_etcd(inputs: &Inputs, host: &Host, facts: &Facts, found: &mut Findings) {
    if facts.units.contains_key("etcd.service") && !facts.owns(UNIT) && !is_masked(facts, "etcd") {
        found.error(
            host,
            "etcd is already installed, but not by kk",
            "move its data elsewhere and remove its unit etcd.service or its package (etcd, etcd-server) \
             first, or use a host without it",
        );
    } else if facts.answer(&DATA).answered() == Some(true) && !facts.owns(ETCD_ENVIRONMENT) {
        found.error(
            host,
            format!("{} contains data of another etcd", inputs.spec.etcd.data_dir),
            "move it away, or set spec.etcd.dataDir to another directory",
        );
    }
}

/// Hosts have the certificates of the control machine, because kk writes them where they differ.
fn certificates(inputs: &Inputs, found: &mut Findings) {
    let (pki, now) = (&inputs.pki, OffsetDateTime::now_utc());
    if pki.is_copy() {
        found.adapted(
            None,
            "the control machine lacks the CA of the cluster's etcd, or the key of that CA",
            "kk copies it from an etcd host",
        );
    }
    for (name, why) in pki.renewed() {
        found.adapted(None, format!("etcd's certificate {name} {why}"), "it is renewed");
    }
    if let Some(ca) = pki.ca_validity().filter(|ca| ca.age(now) != Age::Good) {
        found.warning(
            None,
            format!("the CA of etcd {}", ca.words(now)),
            "replace it before that date: kk certs rotate-ca",
        );
    }
}
