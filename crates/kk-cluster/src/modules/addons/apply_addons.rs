//! Apply kube-proxy, the network plugin and CoreDNS.

use std::{fmt::Write as _, time::Duration};

use kk_engine::{
    Action, HostWork, Task,
    actions::{Command, File},
};

use super::manifests;
use crate::{
    BuildError, Target, kubeadm,
    modules::{KUBECTL, NOTES, slots},
};

/// kube-proxy by kubeadm, the rest from this program's manifests; side by side. The notes say what was applied last.
pub(super) fn task(target: &Target) -> Result<Task, BuildError> {
    let host = target.spec.first_control_plane();
    let facts = target.facts(host);
    let (mut what, mut script) = (Vec::new(), KUBECTL.to_owned());
    let mut notes: Vec<Box<dyn Action>> = Vec::new();
    let mut needed = |name: &str, text: &str, workload: &str| {
        let note = File::text(format!("{NOTES}/{name}.yaml"), text).mode(0o600);
        let changed = note.check(facts).is_needed() || !target.state.workloads.contains_key(workload);
        notes.push(Box::new(note));
        changed
    };
    let mut files = Vec::new();
    if !target.spec.kubernetes.disable_kube_proxy {
        let text = kubeadm::cluster_documents(target);
        if needed("kube-proxy", &text, "kube-system/kube-proxy") {
            what.push("kube-proxy");
            script.push_str("kubeadm init phase addon kube-proxy --config kube-proxy.yaml >/dev/null 2>kube-proxy.err & kube_proxy=$!\n");
            files.push(("kube-proxy", kubeadm::phase_documents(target, host)));
        }
    }
    let mut names = Vec::new();
    for manifest in manifests(target)? {
        if needed(manifest.name, &manifest.text, manifest.workload) {
            what.push(manifest.name);
            names.push(format!("-f {}.yaml", manifest.name));
            files.push((manifest.name, manifest.text));
        }
    }
    if !names.is_empty() {
        let _ = writeln!(
            script,
            // The API itself refuses fields that it does not know; asking it for its schema first costs a second.
            "kubectl apply --server-side --force-conflicts --validate=false --field-manager=kk {} >/dev/null",
            names.join(" ")
        );
    }
    if what.contains(&"kube-proxy") {
        script.push_str("wait $kube_proxy || { cat kube-proxy.err >&2; exit 1; }\n");
    }
    let mut actions: Vec<Box<dyn Action>> = Vec::new();
    if !what.is_empty() {
        let mut apply =
            Command::new(format!("apply {}", what.join(", ")), script).transient_on("connection refused");
        for (name, text) in files {
            apply = apply.file(format!("{name}.yaml"), text.into_bytes());
        }
        actions.push(Box::new(apply));
    }
    // Last: a note means that it is so.
    actions.extend(notes);
    let mut work =
        HostWork::new(actions).needs(slots::initialised().key()).needs(slots::nodes_take_pods().key());
    for node in target.spec.nodes() {
        work = work.awaits(slots::node_tools(&node.name).key());
    }
    if !target.options.skip_pull_images {
        for node in target.spec.nodes() {
            work = work
                .awaits(slots::node_images(&node.name).key())
                .awaits(slots::addon_images(&node.name).key());
        }
    }
    Ok(Task::new("apply_addons", "Apply network, proxy and DNS")
        .timeout(Duration::from_mins(5))
        .retry(kk_engine::Retry::times(3))
        .on(&host.name, work))
}
