//! Schedule backups of etcd.

use kk_engine::{
    Action, HostWork, Task,
    actions::{File, Unit, any_needed},
};
use serde_json::json;

use super::{path, program};
use crate::{BuildError, inputs::Inputs};

/// Where the timer's units are; the names are KubeKey's.
const SERVICE: &str = "/etc/systemd/system/backup-etcd.service";
pub(super) const TIMER: &str = "/etc/systemd/system/backup-etcd.timer";

/// On every host of etcd, so that the loss of one loses no backup. They take place at other minutes on hosts whose addresses follow
/// each other, and at the same ones when another host comes or goes.
pub(super) fn task(inputs: &Inputs) -> Result<Task, BuildError> {
    let mut task = Task::new("schedule_backups", "Schedule backups of etcd").background();
    let period = inputs.spec.etcd.backup_period;
    for (host, facts) in inputs.etcd_hosts() {
        let position = usize::from(host.internal_address.octets()[3] % 12);
        let values = json!({
            "script": path(inputs),
            "period": period,
            // Fifteen minutes after the start, when the cluster is there, one host after the other.
            "first": (15 + 5 * position).min(period as usize),
        });
        let files: Vec<Box<dyn Action>> = vec![
            Box::new(File::text(path(inputs), program(inputs, host)).mode(0o700)),
            Box::new(File::text(SERVICE, inputs.templates.render("etcd/backup-etcd.service", &values)?)),
            Box::new(File::text(TIMER, inputs.templates.render("etcd/backup-etcd.timer", &values)?)),
        ];
        let changes = any_needed(&files, facts);
        let timer =
            Unit::running("backup-etcd.timer").force_restart(changes).restart_after([TIMER.to_owned()]);
        let mut actions = files;
        actions.push(Box::new(timer));
        task = task.on(&host.name, HostWork::new(actions));
    }
    Ok(task)
}
