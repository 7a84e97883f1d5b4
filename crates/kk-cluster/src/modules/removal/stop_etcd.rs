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
        let ours = removal.facts[&host.name].owned.iter().any(|line| line.contains("\t/etc/etcd.env"));
        if host.has_role(&Role::Etcd) && ours {
            let script = format!(
                "systemctl disable -q --now etcd.service 2>/dev/null || systemctl stop etcd.service 2>/dev/null || :\nrm -rf --one-file-system {data}/member\n"
            );
            let stop =
                Command::new(format!("stop etcd and remove {}/member", removal.spec.etcd.data_dir), script);
            task = task.on(&host.name, HostWork::new(vec![Box::new(stop)]));
        }
    }
    task
}
