//! Remove members that have lost their data.

use kk_engine::{HostWork, Task, actions::Command};

use super::join_member::{joining, with_members};
use crate::{base::slots, model::inputs::Inputs};

/// Removes all lost members before the first one joins again: etcd adds a member only while it is connected to all existing
/// members. The member list, not the host, shows whether there is a lost member: after a host was reinstalled, the list still
/// contains its previous member, and a member without data would vote under that identity.
pub(super) fn task(inputs: &Inputs) -> Task {
    let mut task = Task::new("remove_lost_members", "Remove members that have lost their data").background();
    for (host, _) in joining(inputs) {
        let remove = Command::new(
            "remove the previous member of this host from the member list",
            with_members(inputs, host, include_str!("remove_lost_member.sh")),
        )
        .hint(
            "is not mounted",
            "mount it; if it is lost, remove it from /etc/fstab and its mount unit, and remove /etc/etcd-mount on this host",
        );
        let work = HostWork::new(vec![Box::new(remove)])
            .needs(slots::etcd_configured_slot(&host.name))
            .needs(slots::runtime_programs_slot(&host.name))
            .provides(slots::lost_member_removed_slot(&host.name));
        task = task.on(&host.name, work);
    }
    task
}
