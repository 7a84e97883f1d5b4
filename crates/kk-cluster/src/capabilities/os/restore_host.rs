//! Restore the host from its record: files, directories, units, users, kernel settings, swap.

use kk_engine::{HostWork, Kind, Task, actions::Command};

use crate::{
    base::{requirements::Recorded, shell::script, slots},
    model::inputs::Inputs,
};

/// The last task on each host. Lines of the runtime stay unless the runtime is removed, too; lines that do not belong to the
/// cluster always stay.
pub(super) fn task(inputs: &Inputs) -> Task {
    let stays = if inputs.options.remove_runtime { &[][..] } else { &inputs.requirements.stays };
    let keep = stays
        .iter()
        .chain(&inputs.requirements.others)
        .map(Recorded::expression)
        .collect::<Vec<_>>()
        .join("|");
    let mut task = Task::new("restore_host", "Restore the host");
    for (host, facts) in inputs.hosts() {
        let enforced = facts.owned.has(Kind::Saved, "/etc/selinux/config");
        let enforce = if enforced { "yes" } else { "" };
        let variables = [("keep", keep.as_str()), ("enforce", enforce), ("runtime", inputs.runtime.unit)];
        let restore = Command::new(
            "restore replaced files, remove created files",
            script(&variables, include_str!("restore_host.sh")),
        );
        let work = HostWork::new(vec![Box::new(restore)]).provides(slots::host_restored_slot(&host.name));
        task = task.on(&host.name, work);
    }
    task
}
