//! Stop backups of etcd.

use kk_connector::quote;
use kk_engine::{HostWork, Task, actions::Command};

use super::schedule_backups::TIMER;
use crate::model::inputs::Inputs;

/// A backup in progress would continue to write while its host is cleaned, and half a backup is useless. The units of the timer
/// are in the ownership record; the backups stay. A failed unit would still be listed after its file is removed.
pub(super) fn task(inputs: &Inputs) -> Task {
    let mut task = Task::new("stop_backups", "Stop backups of etcd");
    for (host, facts) in inputs.hosts() {
        if facts.owns(TIMER) {
            let half = format!("{}/.new.db", inputs.spec.etcd.backup_dir.trim_end_matches('/'));
            let script = format!(
                "systemctl stop backup-etcd.timer backup-etcd.service 2>/dev/null || :\n\
                 systemctl reset-failed backup-etcd.service 2>/dev/null || :\n\
                 rm -f {}*\n",
                quote(&half)
            );
            let stop = Command::new("stop backups of etcd", script);
            task = task.on(&host.name, HostWork::new(vec![Box::new(stop)]));
        }
    }
    task
}
