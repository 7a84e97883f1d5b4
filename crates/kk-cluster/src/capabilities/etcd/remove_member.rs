//! Remove a member whose host leaves.

use kk_config::{Host, Role};
use kk_engine::{HostWork, Task, actions::Command};

use super::{join_member::with_members_at, membership};
use crate::{
    base::{findings::Findings, host_layout::ETCD_ENVIRONMENT, questions::etcd_servers, slots},
    model::{inputs::Inputs, options::Leaving},
};

/// Hosts that stay in the cluster and whose members are healthy.
fn staying<'a>(inputs: &Inputs<'a>, leaving: &Leaving) -> Vec<&'a Host> {
    membership::healthy(inputs).into_iter().filter(|host| !leaving.has(host)).collect()
}

fn going<'a>(inputs: &Inputs<'a>, leaving: &Leaving) -> Vec<&'a Host> {
    let leaves = |host: &&Host| host.has_role(&Role::Etcd) && leaving.has(host);
    inputs.spec.hosts.iter().filter(leaves).collect()
}

/// Removes members on the host of a member that stays, after their nodes were drained. The tasks run in the background, because
/// the drain may run on that host.
pub(super) fn tasks(inputs: &Inputs, leaving: &Leaving) -> Vec<Task> {
    let going = going(inputs, leaving);
    // If no healthy member stays, nothing begins: see the findings.
    let Some(at) = staying(inputs, leaving).first().or(going.first()).copied() else { return Vec::new() };
    let task = |host: &&Host| {
        let script = with_members_at(inputs, at, host, include_str!("remove_member.sh"));
        let remove = Command::new("remove its member of etcd", script);
        let mut work = HostWork::new(vec![Box::new(remove)])
            .about(&host.name)
            .provides(slots::member_removed_slot(&host.name));
        if host.is_node() && !leaving.gone {
            work = work.needs(slots::drained_slot(&host.name));
        }
        if !host.is_node() {
            work = work.provides(slots::left_slot(&host.name));
        }
        Task::new(format!("remove_member_{}", host.name), format!("Remove member {}", host.name))
            .background()
            .on(&at.name, work)
    };
    going.iter().map(task).collect()
}

/// Reports members on hosts without this role in the file. kk neither removes nor counts such a member, but the other members
/// would still count it for the quorum. If a host is gone, only the cluster knows its member.
fn without_role(inputs: &Inputs, leaving: &Leaving, found: &mut Findings) {
    let there = inputs.facts(inputs.api_host).and_then(etcd_servers).unwrap_or_default();
    let endpoint = |host: &Host| format!("https://{}:{}", host.internal_address, inputs.spec.etcd.port);
    let is_member = |host: &&Host| {
        there.contains(&endpoint(host))
            || inputs.facts(host).is_some_and(|facts| facts.owns(ETCD_ENVIRONMENT))
    };
    let members: Vec<&Host> = inputs.spec.hosts.iter().filter(is_member).collect();
    if !members.iter().any(|host| leaving.has(host)) {
        return;
    }
    for host in members.into_iter().filter(|host| !host.has_role(&Role::Etcd)) {
        found.error(
            host,
            "it is a member of etcd, but does not have this role in the file",
            "add it to spec.roleGroups.etcd again; to remove a member, remove its host with kk delete node",
        );
    }
}

/// Reports an error if the remaining members cannot agree on the removal of others.
pub(crate) fn findings(inputs: &Inputs, leaving: &Leaving, found: &mut Findings) {
    without_role(inputs, leaving, found);
    let (all, going) = (inputs.spec.etcd_hosts().len(), going(inputs, leaving).len());
    if going == 0 {
        return;
    }
    let (rest, stay) = (all - going, staying(inputs, leaving).len());
    if rest == 0 {
        found.error(
            None,
            "the cluster would have no member of etcd left",
            "add another one first, or delete the whole cluster (kk delete cluster)",
        );
    } else if !membership::has_quorum(inputs) || stay * 2 <= rest {
        // The removal needs the agreement of most current members, and most of the remaining members must be healthy.
        found.error(
            None,
            format!("only {stay} of the {rest} remaining members of etcd are healthy, which is too few"),
            "repair the other members first, or remove an unhealthy member",
        );
    } else if rest % 2 == 0 {
        found.warning(
            None,
            format!("{rest} members of etcd remain, which tolerate no more failures than one member fewer"),
            "an odd number of members is better",
        );
    }
}
