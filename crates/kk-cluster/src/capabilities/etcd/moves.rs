//! Moves members whose hosts have another address: the other members get the new address, then the member starts with it.

use std::collections::BTreeSet;

use kk_config::Host;
use kk_engine::{Facts, HostWork, Task, actions::Command};

use super::{immutable::ENVIRONMENT, is_active, join_member::with_list};
use crate::{
    base::{findings::Findings, slots},
    model::inputs::Inputs,
};

/// A file with the previous addresses of a member, one per line. It is removed when all API servers know the new address: until
/// then, only this file records where they look for the member.
pub(super) const MARK: &str = "/etc/etcd-moving";

/// The hint of commands that are refused before a move.
pub(crate) const FIRST: &str = "kk create cluster moves it: run that first";

/// The address with which the member of a host starts. Another check refuses a member with another peer port.
pub(super) fn address(inputs: &Inputs, facts: &Facts) -> Option<String> {
    let there = facts.answer(&ENVIRONMENT).answered()?;
    there.get("MEMBER")?;
    let peer = there.get("ETCD_INITIAL_ADVERTISE_PEER_URLS")?.strip_prefix("https://")?;
    let (address, port) = peer.rsplit_once(':')?;
    (port == inputs.spec.etcd.peer_port.to_string()).then(|| address.to_owned())
}

/// The addresses at which the other members know a member, if the file sets another address or a move is not finished.
pub(crate) fn from(inputs: &Inputs, host: &Host, facts: &Facts) -> Option<BTreeSet<String>> {
    let own = address(inputs, facts);
    let there = facts.answer(&ENVIRONMENT).answered()?;
    let marked = there.get("MOVES_FROM");
    let mut all: BTreeSet<String> =
        marked.iter().flat_map(|list| list.split(',')).map(str::to_owned).chain(own).collect();
    let is_known = all.remove(&host.internal_address.to_string());
    (marked.is_some() || !all.is_empty() && !is_known).then_some(all)
}

/// Members that move.
pub(crate) fn all<'a>(inputs: &Inputs<'a>) -> Vec<(&'a Host, BTreeSet<String>)> {
    let hosts = inputs.etcd_hosts().into_iter();
    hosts.filter_map(|(host, facts)| Some((host, from(inputs, host, facts)?))).collect()
}

pub(super) fn findings(inputs: &Inputs, found: &mut Findings) {
    let moving = all(inputs);
    for (host, from) in &moving {
        let from = from.iter().map(String::as_str).collect::<Vec<_>>().join(", ");
        let to = host.internal_address;
        if !inputs.command.may_move() {
            found.error(*host, format!("etcd is at {from}, but the file sets {to}"), FIRST);
        } else if !from.is_empty() {
            let hint = "kk updates the other members and the API servers";
            found.adapted(*host, format!("etcd moves from {from} to {to}"), hint);
        }
    }
    let members = inputs.spec.etcd_hosts().len();
    if let Some((host, _)) = moving.first().filter(|_| members > 1 && staying(inputs).len() * 2 <= members) {
        found.error(
            *host,
            "too few members of etcd run at their previous addresses to change the address of one of them",
            "restore the previous addresses of most hosts, and move one after the other",
        );
    }
}

/// Members that run at the address that the file sets. Shortly after another member has stopped, they may not be healthy yet,
/// because they elect a leader.
fn staying<'a>(inputs: &Inputs<'a>) -> Vec<&'a Host> {
    let stays = |host: &&Host| {
        let is_there = |facts: &Facts| Some(host.internal_address.to_string()) == address(inputs, facts);
        inputs.facts(host).is_some_and(|facts| is_active(facts) && is_there(facts))
    };
    inputs.spec.etcd_hosts().into_iter().filter(stays).collect()
}

/// Changes the address in the member list before the member starts with it, so that the other members find it. In a cluster with
/// only one member, no other member has to find it, and its address is changed when it runs.
pub(super) fn tell(inputs: &Inputs, host: &Host, is_running: bool) -> Option<Command> {
    let port = inputs.spec.etcd.port;
    let endpoint = |other: &Host| format!("https://{}:{port}", other.internal_address);
    let others = staying(inputs).into_iter().filter(|other| other.name != host.name);
    let mut endpoints: Vec<String> = others.map(endpoint).collect();
    if endpoints.is_empty() != is_running {
        return None;
    }
    if endpoints.is_empty() {
        endpoints.push(format!("https://127.0.0.1:{port}"));
    }
    let text = with_list(inputs, &endpoints, host, host, include_str!("move_member.sh"));
    Some(Command::new("change the address of the member", text))
}

/// Removes the marks when all components that connect to the member know its new address.
pub(crate) fn forget(inputs: &Inputs, needs: &[kk_engine::SlotKey]) -> Task {
    let mut task = Task::new("forget_moves", "Remove the notes of moved members of etcd");
    for (host, _) in all(inputs) {
        let forget = Command::new("remove the note of the move", format!("rm -f {MARK}"));
        let mut work = HostWork::new(vec![Box::new(forget)]).needs(slots::etcd_healthy_slot(&host.name));
        work.needs.extend(needs.iter().cloned());
        task = task.on(&host.name, work);
    }
    task
}

#[cfg(test)]
mod tests {
    use kk_engine::UnitFact;

    use super::*;
    use crate::{
        base::findings::Findings,
        capabilities::etcd::{check::DATA, health::HEALTHY, start_etcd},
        testing,
    };

    const ENV: &str = "ETCD_DATA_DIR=/var/lib/etcd\nETCD_NAME=etcd-x\n";

    /// The members of a sample file. The first `running` members and the last one run, and the last one has this environment
    /// file. Returns the findings, and the actions where the last member starts.
    async fn planned(file: &str, last: &str, running: usize) -> (Vec<String>, Vec<String>) {
        let (spec, directory) = (testing::sample(file), tempfile::tempdir().unwrap());
        let mut probed = testing::fresh(&spec);
        let members = spec.etcd_hosts();
        for (index, host) in members.iter().enumerate() {
            let facts = probed.facts.get_mut(&host.name).unwrap();
            let active = index < running || index + 1 == members.len();
            facts.units.insert("etcd.service".into(), UnitFact { active, ..UnitFact::default() });
            facts.reply(&DATA, "yes");
            facts.reply(&HEALTHY, "no");
            let own = format!(
                "{ENV}ETCD_INITIAL_ADVERTISE_PEER_URLS=https://{}:2380\nMEMBER=yes\n",
                host.internal_address
            );
            facts.reply(&ENVIRONMENT, if index + 1 == members.len() { format!("{ENV}{last}") } else { own });
        }
        let name = members.last().unwrap().name.clone();
        let session = testing::session(spec.clone(), directory.path());
        let inputs = session.create_inputs(&probed).await.unwrap();
        let mut found = Findings::default();
        findings(&inputs, &mut found);
        let task = start_etcd::task(&inputs).unwrap();
        let facts = &probed.facts[&name];
        let actions = task.hosts[&name].actions.iter().map(|action| format!("{:?}", action.check(facts)));
        (found.0.into_iter().map(|finding| finding.message).collect(), actions.collect())
    }

    fn at(actions: &[String], what: &str) -> Option<usize> {
        actions.iter().position(|action| action.contains(what))
    }

    #[tokio::test]
    async fn the_others_are_told_before_a_member_starts_at_another_address() {
        let moved = "ETCD_INITIAL_ADVERTISE_PEER_URLS=https://192.0.2.99:2380\nMEMBER=yes\n";
        let (found, actions) = planned("three-nodes.yaml", moved, 2).await;
        assert!(
            matches!(&found[..], [one] if one.starts_with("etcd moves from 192.0.2.99 to ")),
            "{found:?}"
        );
        let (told, env) =
            (at(&actions, "address of the member").unwrap(), at(&actions, "/etc/etcd.env").unwrap());
        assert!(told < env, "{actions:?}");
        // There is no other member: the member changes its own address when it runs.
        let (found, actions) = planned("all-in-one.yaml", moved, 0).await;
        assert_eq!(found.len(), 1, "{found:?}");
        let (told, env) =
            (at(&actions, "address of the member").unwrap(), at(&actions, "/etc/etcd.env").unwrap());
        assert!(told > env, "{actions:?}");
    }

    #[tokio::test]
    async fn a_killed_run_is_gone_on_with_and_a_member_that_stays_is_left_alone() {
        let spec = testing::sample("three-nodes.yaml");
        let own = spec.etcd_hosts().last().unwrap().internal_address;
        let stays = format!("ETCD_INITIAL_ADVERTISE_PEER_URLS=https://{own}:2380\nMEMBER=yes\n");
        let (found, actions) = planned("three-nodes.yaml", &stays, 2).await;
        assert_eq!((found.len(), at(&actions, "address of the member")), (0, None));
        let begun = format!("{stays}MOVES_FROM=192.0.2.99\n");
        let (found, actions) = planned("three-nodes.yaml", &begun, 2).await;
        assert!(found[0].starts_with("etcd moves from 192.0.2.99"), "{found:?}");
        assert!(at(&actions, "address of the member").is_some());
    }

    #[tokio::test]
    async fn nobody_moves_without_a_quorum() {
        let moved = "ETCD_INITIAL_ADVERTISE_PEER_URLS=https://192.0.2.99:2380\nMEMBER=yes\n";
        let (found, _) = planned("three-nodes.yaml", moved, 1).await;
        assert!(found.iter().any(|message| message.contains("too few members")), "{found:?}");
    }
}
