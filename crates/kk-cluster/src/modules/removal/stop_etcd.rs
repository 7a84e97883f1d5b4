//! Stop etcd and remove its data.

use kk_config::Role;
use kk_connector::quote;
use kk_engine::{HostWork, Task, actions::Command};

use super::Removal;

/// Only what this program started: another etcd on the host is none of ours.
pub(super) fn task(removal: &Removal) -> Task {
    let mut task = Task::new("stop_etcd", "Remove etcd");
    let data = quote(&removal.spec.etcd.data_dir).into_owned();
    for host in removal.hosts() {
        let ours = crate::precheck::is_ours(&removal.facts[&host.name], "/etc/etcd.env");
        if host.has_role(&Role::Etcd) && ours {
            // Killed, not asked: a member that has lost its quorum would look for a new leader first, and its data goes.
            let script = format!(
                "systemctl disable -q etcd.service 2>/dev/null || :\nsystemctl stop --no-block etcd.service 2>/dev/null || :\n\
                 systemctl kill -s KILL etcd.service 2>/dev/null || :\nsystemctl stop etcd.service 2>/dev/null || :\n\
                 rm -rf --one-file-system {data}/member\n"
            );
            let stop =
                Command::new(format!("stop etcd and remove {}/member", removal.spec.etcd.data_dir), script);
            task = task.on(&host.name, HostWork::new(vec![Box::new(stop)]));
        }
    }
    task
}
