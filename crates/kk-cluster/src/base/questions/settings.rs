//! Settings of a control plane that runs, as its files have them.

use std::collections::{BTreeMap, BTreeSet};

use kk_engine::{Facts, Question};

/// Settings by name: flags of the control plane as kubeadm has written them, the API's address in the administrator's
/// kubeconfig, and the kubelet's domain. Nothing where no cluster is.
pub(crate) const SETTINGS: Question<BTreeMap<String, String>> =
    Question::new("settings", include_str!("settings.sh"), parse);

fn parse(text: &str) -> Option<BTreeMap<String, String>> {
    let line =
        |line: &str| line.split_once('\t').map(|(name, value)| (name.to_owned(), value.trim().to_owned()));
    text.lines().map(line).collect()
}

/// Where the API server of a host finds etcd.
pub(crate) fn etcd_servers(facts: &Facts) -> Option<BTreeSet<String>> {
    let servers = facts.answer(&SETTINGS).answered()?.remove("etcd-servers")?;
    Some(servers.split(',').map(|server| server.trim().to_owned()).collect())
}
