//! Update the kubelet's settings on nodes that have joined.

use kk_engine::{
    Action, HostWork, Task,
    actions::{Command, File},
};

use crate::{
    host_layout::{DROP_COPIES, NOTES},
    inputs::Inputs,
    kubeadm, slots,
};

/// A new node reads its settings from the cluster when it joins, and only writes the note. One that has joined before
/// fetches them again when the note differs from the file; the kubelet restarts only then.
pub(super) fn task(inputs: &Inputs) -> Task {
    let text = kubeadm::kubelet_document(inputs);
    let mut task = Task::new("update_kubelet_settings", "Update kubelet settings");
    for (host, facts) in inputs.nodes() {
        let file = File::text(format!("{NOTES}/kubelet.yaml"), text.clone());
        let mut actions: Vec<Box<dyn Action>> = Vec::new();
        let mut work = HostWork::default().needs(slots::joined_slot(&host.name));
        if inputs.has_joined(host) && file.check(facts).is_needed() {
            actions.push(Box::new(Command::new(
                "fetch the kubelet's settings from the cluster",
                format!("kubeadm upgrade node phase kubelet-config\n{DROP_COPIES}systemctl restart kubelet.service\n"),
            )));
            work = work.needs(slots::settings_published_slot());
        }
        // Last: the note means that it is so.
        actions.push(Box::new(file));
        work.actions = actions;
        task = task.on(&host.name, work);
    }
    task
}
