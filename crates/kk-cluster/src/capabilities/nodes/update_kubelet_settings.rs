//! Update the kubelet's settings on nodes that have joined.

use kk_artifact::Component;
use kk_config::Host;
use kk_engine::{
    Action, Facts, HostWork, Task,
    actions::{Command, File},
};

use super::{local_api, rollout};
use crate::{
    BuildError,
    capabilities::{kubelet, programs},
    host_layout::{DROP_COPIES, NOTES},
    inputs::Inputs,
    kubeadm,
    rollout::Rollout,
    slots,
};

/// A new node reads its settings from the cluster when it joins, and only writes the note. One that has joined before
/// fetches them again when the note differs from the file, and gets its program, its unit and its flags here when its kubelet runs:
/// a host whose turn does not come must start with the old ones. The next task restarts its kubelet.
pub(super) fn task(inputs: &Inputs, rollout: &Rollout) -> Result<Task, BuildError> {
    let mut task = Task::new("update_kubelet_settings", "Update kubelet settings");
    for (host, facts) in inputs.nodes() {
        let mut actions: Vec<Box<dyn Action>> = Vec::new();
        let mut work = HostWork::default().needs(slots::joined_slot(&host.name));
        if inputs.has_joined(host) && rollout::changes(inputs, host, facts)? {
            work = rollout.after_first(host, work);
            let asks = local_api::ask_next_to_it(inputs, host);
            actions.extend(asks.map(|asks| Box::new(asks) as Box<dyn Action>));
            // Before the settings, because it may take minutes: the program of now does not start from other settings.
            let fetched = programs::replace_in_turn(inputs, host, Component::Kubelet, &mut actions);
            if fetched.is_some() {
                task = task.timeout(programs::UPLOAD_TIMEOUT);
            }
            work.needs.extend(fetched);
            if kubelet::changes_in_turn(inputs, host, facts) {
                actions.extend(kubelet::files(inputs, host)?);
            }
        }
        if is_needed(inputs, host, facts) {
            actions.push(Box::new(Command::new(
                "fetch the kubelet's settings from the cluster",
                format!("rm -f {}\nkk_do kubeadm upgrade node phase kubelet-config\n{DROP_COPIES}", path()),
            )));
            work = work.needs(slots::settings_published_slot());
        }
        // Last: the note means that it is so.
        actions.push(Box::new(note(inputs)));
        work.actions = actions;
        task = task.on(&host.name, work);
    }
    Ok(rollout.in_turns(task))
}

/// Whether a node that has joined has other settings than the file asks for, or none.
pub(super) fn is_needed(inputs: &Inputs, host: &Host, facts: &Facts) -> bool {
    inputs.has_joined(host) && (note(inputs).check(facts).is_needed() || kubelet::lacks_settings(facts))
}

fn path() -> String {
    format!("{NOTES}/kubelet.yaml")
}

fn note(inputs: &Inputs) -> File {
    File::text(path(), kubeadm::kubelet_document(inputs))
}
