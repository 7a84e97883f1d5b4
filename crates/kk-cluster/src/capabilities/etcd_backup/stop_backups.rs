//! Stop backups of etcd.

use kk_connector::quote;
use kk_engine::{HostWork, Task, actions::Command};

use super::schedule_backups::TIMER;
use crate::model::inputs::Inputs;

/// One that is being made would write on while its host is cleaned; half of one is nothing to keep. The timer's units are in the
/// record; the backups stay. A unit that has failed would be shown as such after its file is gone.
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
