//! Apply manifests that are missing or changed.

use std::{fmt::Write as _, time::Duration};

use kk_engine::{
    Action, Facts, HostWork, Task,
    actions::{Command, File},
};

use super::record_objects::is_recorded;
use crate::{
    base::{
        host_layout::{KUBECTL, NOTES},
        requirements::Manifest,
        slots,
    },
    model::inputs::Inputs,
};

/// Applies all manifests at once. The notes contain the state that was last applied.
pub(super) fn task(inputs: &Inputs) -> Task {
    let task = Task::new("apply_manifests", "Apply network, proxy and DNS")
        .timeout(Duration::from_mins(5))
        .retry(kk_engine::Retry::times(3));
    let Some(facts) = inputs.facts(inputs.api_host) else { return task };
    let manifests = &inputs.requirements.manifests;
    let needed: Vec<&Manifest> =
        manifests.iter().filter(|manifest| is_needed(inputs, manifest, facts)).collect();
    let mut actions: Vec<Box<dyn Action>> = Vec::new();
    if !needed.is_empty() {
        let names: Vec<&str> = needed.iter().map(|manifest| manifest.name).collect();
        let mut apply = Command::new(format!("apply {}", names.join(", ")), script(&needed))
            .transient_on("connection refused");
        for manifest in needed {
            apply = apply.file(format!("{}.yaml", manifest.name), manifest.file.clone().into_bytes());
        }
        actions.push(Box::new(apply));
    }
    // Last, because a note means that its manifest is applied.
    actions.extend(manifests.iter().map(|manifest| Box::new(note(manifest)) as Box<dyn Action>));
    let mut work = HostWork::new(actions)
        .needs(slots::initialised_slot())
        .needs(slots::nodes_take_pods_slot())
        .provides(slots::manifests_applied_slot());
    for (node, _) in inputs.nodes() {
        // Pods in the network of their node keep the names in /etc/hosts from their start.
        work = work.after(slots::node_tools_slot(&node.name)).after(slots::api_name_slot(&node.name));
        if !inputs.options.skip_pull_images {
            work =
                work.after(slots::node_images_slot(&node.name)).after(slots::addon_images_slot(&node.name));
        }
    }
    task.on(&inputs.api_host.name, work)
}

/// The note of a manifest: the state that was last applied.
pub(crate) fn note(manifest: &Manifest) -> File {
    File::text(format!("{NOTES}/{}.yaml", manifest.name), manifest.note.as_str()).mode(0o600)
}

/// Whether the manifest was never applied, or the file or another client has changed it since. In a new cluster, `kubeadm init`
/// creates the objects of some manifests.
fn is_needed(inputs: &Inputs, manifest: &Manifest, facts: &Facts) -> bool {
    if manifest.made_by_init && !inputs.is_initialised() {
        return false;
    }
    note(manifest).check(facts).is_needed() || !is_recorded(&inputs.state.objects, manifest, facts)
}

/// Manifests with their own command run in the background of a single `kubectl apply` for all others.
fn script(needed: &[&Manifest]) -> String {
    let (mut script, mut names, mut waits) = (KUBECTL.to_owned(), String::new(), String::new());
    for (number, manifest) in needed.iter().enumerate() {
        match manifest.command {
            Some(command) => {
                let _ = writeln!(script, "(\n{command}) >/dev/null 2>error.{number} & pid_{number}=$!");
                let _ = writeln!(waits, "wait $pid_{number} || {{ cat error.{number} >&2; exit 1; }}");
            }
            None => {
                let _ = write!(names, " -f {}.yaml", manifest.name);
            }
        }
    }
    if !names.is_empty() {
        let _ = writeln!(
            script,
            // The API itself refuses unknown fields; fetching its schema first takes a second.
            "kubectl apply --server-side --force-conflicts --validate=false --field-manager=kk{names} >/dev/null"
        );
    }
    script + &waits
}
