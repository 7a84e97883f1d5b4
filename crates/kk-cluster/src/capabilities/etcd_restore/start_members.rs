//! Start the members of etcd again.

use kk_connector::quote;
use kk_engine::{HostWork, Task, actions::Command};

use super::{STARTED, after, of_members};
use crate::{
    base::{host_layout::RESTORING, slots},
    capabilities::etcd,
    model::inputs::Inputs,
};

/// Starts all members at once, because a member is ready only when most of the others are.
pub(super) fn task(inputs: &Inputs) -> Task {
    let mut task = Task::new("start_members", "Start the members of etcd again").timeout(etcd::START_TASK);
    for (host, _) in super::members(inputs) {
        let start = Command::new(
            "start etcd",
            "systemctl reset-failed etcd.service 2>/dev/null || :\nsystemctl start --no-block etcd.service\n",
        );
        // From now on, the data of the member is authoritative: another attempt keeps it next to its own.
        let restored = format!("{}/member/.restored", inputs.spec.etcd.data_dir);
        let data = quote(&restored);
        let started =
            format!("rm -f {data}\nprintf '{}' >{1}\nsync {1}\n", STARTED.escape_default(), quote(RESTORING));
        let started = Command::new("mark the member as restored", started);
        let work = HostWork::new(vec![
            Box::new(start),
            Box::new(etcd::wait_for_start(inputs, host)),
            Box::new(started),
        ])
        .provides(slots::etcd_healthy_slot(&host.name));
        task = task.on(&host.name, after(work, of_members(inputs, slots::member_restored_slot)));
    }
    task
}
