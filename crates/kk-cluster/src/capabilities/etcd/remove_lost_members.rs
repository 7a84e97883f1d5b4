//! Remove members that have lost their data.

use kk_engine::{HostWork, Task, actions::Command};

use super::join_member::{joining, with_members};
use crate::{base::slots, model::inputs::Inputs};

/// All of them before the first joins again: etcd takes a new member only while it is connected to all that it has. The list of
/// members says whether there is one, not the host: of a host that was installed anew the list has the member of before, and
/// under its identity a member without data would vote.
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
