//! What can be known before the first change: all hosts, all problems, in one list.
//!
//! A finding is an error (nothing is begun), a warning (the person decides), or something that the program adapts to
//! and says so. Pure: the facts in, the findings out.

mod cluster;
mod fixed;
mod host;

use std::collections::BTreeMap;

pub(crate) use fixed::QUERY as FIXED_SETTINGS;
pub(crate) use host::NODE_TOOLS;
use kk_config::Spec;
use kk_engine::{Facts, Finding, Severity};

/// Collects the findings of one host.
struct Findings<'a> {
    host: &'a str,
    list: &'a mut Vec<Finding>,
}

impl Findings<'_> {
    fn add(&mut self, severity: Severity, message: impl Into<String>, hint: impl Into<String>) {
        self.list.push(Finding {
            severity,
            host: Some(self.host.to_owned()),
            message: message.into(),
            hint: hint.into(),
        });
    }

    fn error(&mut self, message: impl Into<String>, hint: impl Into<String>) {
        self.add(Severity::Error, message, hint);
    }

    fn warning(&mut self, message: impl Into<String>, hint: impl Into<String>) {
        self.add(Severity::Warning, message, hint);
    }

    fn adapted(&mut self, message: impl Into<String>, hint: impl Into<String>) {
        self.add(Severity::Adapted, message, hint);
    }
}

/// Looks at every host and at the cluster as a whole. Errors come first, then in the order of the hosts.
/// `etcd_ca` is the SHA-256 of the CA of etcd that this machine holds.
pub(crate) fn precheck(spec: &Spec, facts: &BTreeMap<String, Facts>, etcd_ca: &str) -> Vec<Finding> {
    let mut list = Vec::new();
    for host in &spec.hosts {
        if let Some(facts) = facts.get(&host.name) {
            host::check(spec, host, facts, &mut Findings { host: &host.name, list: &mut list });
        }
    }
    cluster::check(spec, facts, etcd_ca, &mut list);
    if let Some(first) = facts.get(&spec.first_control_plane().name) {
        fixed::check(spec, first, &mut list);
    }
    list.sort_by_key(|finding| finding.severity);
    list
}

/// Whether this program has written a file of the host.
pub(crate) fn is_ours(facts: &Facts, path: &str) -> bool {
    facts.owns(path)
}

#[cfg(test)]
mod tests;
