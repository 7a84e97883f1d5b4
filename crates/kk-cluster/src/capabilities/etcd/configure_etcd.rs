//! Configure etcd: write its environment file and its unit.

use kk_engine::{
    Action, HostWork, Task,
    actions::{Directory, File},
};

use super::{files::files, is_active, moves};
use crate::{
    base::{error::BuildError, slots},
    model::inputs::Inputs,
};

/// Writes the files of members that do not run. Running members get changed files in their turn.
pub(super) fn task(inputs: &Inputs) -> Result<Task, BuildError> {
    let mut task = Task::new("configure_etcd", "Configure etcd");
    for (host, facts) in inputs.etcd_hosts() {
        let data = Directory::new(&inputs.spec.etcd.data_dir).mode(0o700).owner("etcd:etcd");
        let mut actions: Vec<Box<dyn Action>> = vec![Box::new(data)];
        // The mark is written before the files that no longer contain the address.
        if let Some(from) = moves::from(inputs, host, facts) {
            let lines: String = from.into_iter().map(|address| address + "\n").collect();
            actions.push(Box::new(File::text(moves::MARK, lines)));
        }
        if !is_active(facts) {
            actions.extend(files(inputs, host, facts)?);
        }
        task = task.on(&host.name, HostWork::new(actions).provides(slots::etcd_configured_slot(&host.name)));
    }
    Ok(task)
}
