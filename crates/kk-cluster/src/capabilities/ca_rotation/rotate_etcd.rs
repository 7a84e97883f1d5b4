//! Take etcd through a round of the rotation.

use std::sync::Arc;

use kk_config::{Host, Role};
use kk_engine::{
    Action, HostWork, Task, Turn,
    actions::{Command, File},
};

use super::{Authorities, Round, text};
use crate::{
    base::{
        host_layout::{ETCD_CA, ETCD_CA_KEY},
        slots,
    },
    capabilities::etcd,
    model::inputs::Inputs,
};

/// Rotates one member at a time, until it is healthy. A member reads the CAs that it trusts only at its start, and its own
/// certificate for each connection. Control planes get the files that their API servers need for etcd; the API servers restart
/// later.
pub(super) fn task(inputs: &Inputs, authorities: &Arc<Authorities>, round: Round) -> Task {
    let title = match round {
        Round::TrustBoth => "Make etcd trust both CAs",
        Round::Issue => "Issue new certificates for etcd",
        Round::TrustNew => "Make etcd trust only the new CA",
    };
    // Members that are not healthy are first. A killed run may have left a member in the middle of a restart: while it is down,
    // the restart of another member may cost the quorum.
    let members = inputs.etcd_hosts().into_iter();
    let sick = members.filter(|(_, facts)| etcd::is_healthy(facts) != Some(true));
    let turn = Turn::one_by_one("etcd").order(sick.map(|(host, _)| host.name.clone()));
    let mut task = Task::new("rotate_etcd", title).turn(turn);
    for (host, _) in inputs.hosts() {
        let is_member = host.has_role(&Role::Etcd);
        if !is_member && !host.has_role(&Role::ControlPlane) {
            continue;
        }
        let mut actions = actions(inputs, authorities, round, host);
        if is_member {
            actions.push(Box::new(etcd::wait(inputs, host)));
        }
        let work = HostWork::new(actions)
            .needs(slots::etcd_certificates_slot())
            .provides(slots::etcd_healthy_slot(&host.name));
        task = task.on(&host.name, work);
    }
    task.timeout(etcd::START_TASK)
}

fn actions(inputs: &Inputs, authorities: &Authorities, round: Round, host: &Host) -> Vec<Box<dyn Action>> {
    let (is_member, pki) = (host.has_role(&Role::Etcd), &authorities.etcd);
    let command = |describe: &str, parts: &[&str]| {
        Command::new(describe, text(round, &[("ca", ETCD_CA)], parts))
            .file("etcd-ca.new", pki.ca_cert().as_bytes())
    };
    let place = include_str!("rotate_etcd.sh");
    let mut actions: Vec<Box<dyn Action>> = Vec::new();
    if round == Round::Issue {
        actions.push(Box::new(command("put the new CA of etcd first", &[place])));
        actions.extend(etcd::pairs(pki, host));
        if is_member {
            actions.push(Box::new(File::text(ETCD_CA_KEY, pki.ca_key().expose()).mode(0o600)));
            // Trust only the new CA; otherwise, the query would also succeed with the old certificate.
            let health = etcd::health_with_ca(inputs.spec, host, "etcd-ca.new");
            actions.push(Box::new(
                command("query etcd with only the new CA", &[&format!("kk_do {health} >/dev/null\n")])
                    .hint("", "see \"journalctl -u etcd\" on the host"),
            ));
        }
    } else if is_member {
        let restart = "systemctl restart etcd.service\n";
        actions.push(Box::new(command("restart etcd with the CAs of this round", &[place, restart])));
    } else {
        actions.push(Box::new(command("install the etcd CAs of this round", &[place])));
    }
    actions
}
