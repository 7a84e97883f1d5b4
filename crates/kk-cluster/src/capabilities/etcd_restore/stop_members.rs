//! Stop the members of etcd.

use kk_connector::quote;
use kk_engine::{HostWork, Task, actions::Command};

use super::{after, api_servers_stopped};
use crate::{
    base::{host_layout::RESTORING, slots},
    model::inputs::Inputs,
};

/// The mark is written first: from now on, members may have different histories.
pub(super) fn task(inputs: &Inputs) -> Task {
    let mut task = Task::new("stop_members", "Stop the members of etcd");
    for (host, _) in super::members(inputs) {
        let text = format!(
            "kk_own {0}\n: >{0}\nsync {0}\nsystemctl stop backup-etcd.timer backup-etcd.service 2>/dev/null || :\n{1}",
            quote(RESTORING),
            include_str!("stop_member.sh")
        );
        let work = HostWork::new(vec![Box::new(Command::new("stop etcd", text))])
            .provides(slots::member_stopped_slot(&host.name));
        task = task.on(&host.name, after(work, api_servers_stopped(inputs)));
    }
    task
}
