//! Lists settings of etcd that a running cluster cannot change: its data directory, its name and its peer port, on which the
//! members have agreed. They are read on every member, because each member has its own.

use std::collections::BTreeMap;

use kk_config::Host;
use kk_engine::{Facts, Question};

use super::moves;
use crate::{base::findings::Setting, model::inputs::Inputs};

/// The settings in the environment file of a member, and `MEMBER` if that member has data. Empty if the file does not exist.
pub(crate) const ENVIRONMENT: Question<BTreeMap<String, String>> =
    Question::new("etcd_environment", include_str!("environment.sh"), parse);

fn parse(text: &str) -> Option<BTreeMap<String, String>> {
    let pair = |line: &str| line.split_once('=').map(|(name, value)| (name.to_owned(), value.to_owned()));
    text.lines().map(pair).collect()
}

pub(super) fn settings(inputs: &Inputs) -> Vec<Setting> {
    inputs.etcd_hosts().into_iter().flat_map(|(host, facts)| of_member(inputs, host, facts)).collect()
}

/// A member that has never started has nothing to lose.
fn of_member(inputs: &Inputs, host: &Host, facts: &Facts) -> Vec<Setting> {
    let there = facts.answer(&ENVIRONMENT).answered().unwrap_or_default();
    let etcd = &inputs.spec.etcd;
    if !there.contains_key("MEMBER") {
        return Vec::new();
    }
    let setting = |name: &str, what, field, wanted| Setting {
        host: Some(host.name.clone()),
        what,
        field,
        there: there.get(name).cloned(),
        wanted,
    };
    let mut settings = vec![
        setting("ETCD_DATA_DIR", "etcd stores its data in", "spec.etcd.dataDir", etcd.data_dir.clone()),
        setting("ETCD_NAME", "etcd is called", "the host's name", format!("etcd-{}", host.name)),
    ];
    // The address may change, but the port may not.
    let moves = moves::from(inputs, host, facts).is_some() && moves::address(inputs, facts).is_some();
    if !moves {
        let peer = format!("https://{}:{}", host.internal_address, etcd.peer_port);
        let field = "spec.etcd.peerPort";
        settings.push(setting("ETCD_INITIAL_ADVERTISE_PEER_URLS", "etcd peer address is", field, peer));
    }
    settings
}
