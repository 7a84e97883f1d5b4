//! Settings of a running control plane, from its files.

use std::collections::{BTreeMap, BTreeSet};

use kk_engine::{Facts, Question};

/// Settings by name: flags of the control plane as kubeadm wrote them, the API's address in the administrator's kubeconfig, and
/// the cluster domain of the kubelet. Empty if there is no cluster.
pub(crate) const SETTINGS: Question<BTreeMap<String, String>> =
    Question::new("settings", include_str!("settings.sh"), parse);

fn parse(text: &str) -> Option<BTreeMap<String, String>> {
    let line =
        |line: &str| line.split_once('\t').map(|(name, value)| (name.to_owned(), value.trim().to_owned()));
    text.lines().map(line).collect()
}

/// The addresses by which the API server of a host reaches etcd.
pub(crate) fn etcd_servers(facts: &Facts) -> Option<BTreeSet<String>> {
    let servers = facts.answer(&SETTINGS).answered()?.remove("etcd-servers")?;
    Some(servers.split(',').map(|server| server.trim().to_owned()).collect())
}
