//! Deploy ks-installer.

use std::time::Duration;

use kk_config::{KubeSphere as Wanted, Role};
use kk_engine::{Action, Facts, HostWork, Retry, Task, actions::Command};

use super::{manifest, state};
use crate::{
    base::{
        host_layout::{ETCD_CA, KUBECTL},
        requirements::Manifest,
        shell::script,
        slots,
        supply::Installer,
    },
    capabilities::{
        etcd,
        manifests::{is_recorded, note},
    },
    model::inputs::Inputs,
};

/// Deploys the operator, the rights that its payload needs, and the `ClusterConfiguration`. The operator removes components that
/// this document disables.
pub(super) fn task(inputs: &Inputs, wanted: &Wanted, manifest: &Manifest, image: &str) -> Task {
    let task = Task::new("deploy_installer", "Deploy ks-installer")
        .timeout(Duration::from_mins(10))
        .retry(Retry::times(3));
    let Some(facts) = inputs.facts(inputs.api_host) else { return task };
    let mut actions: Vec<Box<dyn Action>> = Vec::new();
    if is_needed(inputs, manifest, facts) {
        let configuration = manifest::configuration(inputs, wanted).to_string();
        let deploy =
            Command::new("apply ks-installer and its ClusterConfiguration", text(inputs, wanted, image))
                .transient_on("connection refused")
                .hint(
                    "image",
                    "make sure that spec.kubesphere.image is an image of ks-installer that contains a \
                     payload",
                )
                .file("installer.yaml", manifest.file.clone().into_bytes())
                .file("configuration.yaml", configuration.into_bytes());
        actions.push(Box::new(deploy));
    }
    // The note is last: it means that the operator is deployed.
    actions.push(Box::new(note(manifest)));
    let mut work = HostWork::new(actions)
        .needs(slots::manifests_applied_slot())
        .provides(slots::installer_applied_slot())
        .after(slots::node_tools_slot(&inputs.api_host.name));
    for (host, _) in inputs.nodes().into_iter().filter(|(host, _)| host.has_role(&Role::ControlPlane)) {
        match inputs.installer {
            Installer::Archive(_) => work = work.after(slots::installer_image_slot(&host.name)),
            _ if inputs.options.skip_pull_images => {}
            _ => work = work.after(slots::addon_images_slot(&host.name)),
        }
    }
    task.on(&inputs.api_host.name, work)
}

/// Whether the operator is not applied yet, or the file or another tool has changed it since.
fn is_needed(inputs: &Inputs, manifest: &Manifest, facts: &Facts) -> bool {
    let there = state::of(inputs).unwrap_or_default();
    note(manifest).check(facts).is_needed()
        || !is_recorded(&there.objects, manifest, facts)
        || there.has_etcd_key
}

fn text(inputs: &Inputs, wanted: &Wanted, image: &str) -> String {
    let own_etcd = if etcd::names_members(inputs.spec, wanted) { "yes" } else { "" };
    let variables = [
        ("image", image),
        ("wanted", wanted.version.as_deref().unwrap_or_default()),
        ("own_etcd", own_etcd),
        ("ca", ETCD_CA),
    ];
    [KUBECTL, inputs.runtime.operations, &script(&variables, include_str!("deploy.sh"))].concat()
}
