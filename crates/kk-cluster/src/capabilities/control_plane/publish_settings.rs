//! Publish the settings of the cluster, which joining nodes and kubelets fetch.

use kk_config::{Host, Role};
use kk_engine::{
    Action, HostWork, Task,
    actions::{Command, File},
};

use crate::{
    base::{
        host_layout::{KUBECTL, NOTES},
        slots,
    },
    model::{inputs::Inputs, kubeadm},
};

/// Publishes the settings before a node joins, on the control plane where the API is queried. The notes record what was published
/// last. `kubeadm init` publishes its own settings, so a new cluster only gets the notes.
pub(super) fn task(inputs: &Inputs) -> Task {
    let host = inputs.api_host;
    let mut actions: Vec<Box<dyn Action>> = Vec::new();
    let config = kubeadm::phase_documents(inputs, host);
    let upload = |what: &'static str, text: String| {
        Box::new(Command::new(what, text).file("config.yaml", config.clone().into_bytes()))
    };
    let (cluster, kubelet) = notes(inputs);
    if inputs.is_initialised() {
        let lost = inputs.state.answered && !inputs.state.has_configuration;
        if lost || is_needed(inputs, &cluster) {
            let text = format!("{KUBECTL}{}", include_str!("publish_settings.sh"));
            actions.push(upload("publish the settings of the cluster", text));
        }
        let lost = inputs.state.answered && !inputs.state.has_kubelet_configuration;
        if lost || is_needed(inputs, &kubelet) {
            let text = "kubeadm init phase upload-config kubelet --config config.yaml\n".to_owned();
            actions.push(upload("publish the kubelet's settings", text));
        }
    }
    actions.push(Box::new(cluster));
    actions.push(Box::new(kubelet));
    // Use the kubeadm of the published version.
    let work = HostWork::new(actions)
        .needs(slots::initialised_slot())
        .needs(slots::kube_programs_slot(&host.name))
        .provides(slots::settings_published_slot());
    let mut task = Task::new("publish_settings", "Publish settings").on(&host.name, work);
    // If this control plane is unavailable or leaves, the API is queried at another control plane. Therefore, all others get the
    // notes, including control planes that this command leaves as they are.
    let takes_part = |other: &Host| inputs.has_joined(other) || inputs.scope.contains(other);
    let others = inputs.answered().into_iter().filter(|(other, _)| {
        other.has_role(&Role::ControlPlane) && other.name != host.name && takes_part(other)
    });
    for (other, _) in others {
        let (cluster, kubelet) = notes(inputs);
        let work = HostWork::new(vec![Box::new(cluster), Box::new(kubelet)]);
        task = task.on(&other.name, work.needs(slots::settings_published_slot()));
    }
    task
}

/// The notes of what was published last: the settings of the cluster, and the settings of the kubelet.
fn notes(inputs: &Inputs) -> (File, File) {
    (
        File::text(format!("{NOTES}/kubeadm-config.yaml"), kubeadm::cluster_document(inputs)),
        File::text(format!("{NOTES}/kubelet-cluster.yaml"), kubeadm::kubelet_document(inputs)),
    )
}

fn is_needed(inputs: &Inputs, note: &File) -> bool {
    inputs.facts(inputs.api_host).is_some_and(|facts| note.check(facts).is_needed())
}

/// Whether the file requires settings other than those in the cluster, apart from its control planes and its members of etcd.
pub(crate) fn are_changed(inputs: &Inputs) -> bool {
    super::note::more_is_changed(inputs, inputs.api_host) || is_needed(inputs, &notes(inputs).1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{commands::add_nodes::tests::spec, testing};

    /// The API is queried at another control plane if the first is unavailable or leaves.
    #[tokio::test]
    async fn every_control_plane_has_the_note_of_what_was_published() {
        let directory = tempfile::tempdir().unwrap();
        let session = testing::session(spec(), directory.path());
        let probed = testing::fresh(session.spec());
        let task = task(&session.create_inputs(&probed).await.unwrap());
        for host in ["n1", "n3"] {
            let paths: Vec<String> = task.hosts[host]
                .actions
                .iter()
                .map(|action| format!("{:?}", action.check(&probed.facts[host])))
                .collect();
            let has = |name: &str| paths.iter().any(|path| path.contains(name));
            assert!(has("kubeadm-config.yaml") && has("kubelet-cluster.yaml"), "{host}: {paths:?}");
        }
        assert_eq!(task.hosts.len(), 2);
    }
}
