//! Update the kubelet's settings on nodes that have joined.

use kk_artifact::Component;
use kk_config::Host;
use kk_engine::{
    Action, Facts, HostWork, Task,
    actions::{Command, File},
};

use super::{local_api, rollout};
use crate::{
    base::{
        error::BuildError,
        host_layout::{DROP_COPIES, NOTES},
        rollout::Rollout,
        slots,
    },
    capabilities::{kubelet, programs},
    model::{inputs::Inputs, kubeadm},
};

/// A new node reads its settings from the cluster when it joins, and only writes the note. A node that had joined before fetches
/// the settings again if the note differs from the file. If its kubelet runs, this task also installs its binary, unit and flags:
/// a host that never gets its turn must restart with the old ones. The next task restarts the kubelet.
pub(crate) fn task(inputs: &Inputs, rollout: &Rollout) -> Result<Task, BuildError> {
    let mut task = Task::new("update_kubelet_settings", "Update kubelet settings");
    for (host, facts) in inputs.nodes() {
        let mut actions: Vec<Box<dyn Action>> = Vec::new();
        let mut work = HostWork::default().needs(slots::joined_slot(&host.name));
        if inputs.has_joined(host) && rollout::changes(inputs, host, facts)? {
            work = rollout.after_first(host, work);
            let asks = local_api::ask_next_to_it(inputs, host);
            actions.extend(asks.map(|asks| Box::new(asks) as Box<dyn Action>));
            // Before the settings, because it may take minutes: the current binary cannot start with other settings.
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
            // A correct note is not written again.
            let forget = if note(inputs).check(facts).is_needed() {
                format!("rm -f {}\n", path())
            } else {
                String::new()
            };
            actions.push(Box::new(Command::new(
                "fetch the kubelet's settings from the cluster",
                format!("{forget}{}\n{DROP_COPIES}", include_str!("fetch_kubelet_settings.sh")),
            )));
            work = work.needs(slots::settings_published_slot());
        }
        // Last, because the note means that the settings are in use.
        actions.push(Box::new(note(inputs)));
        work.actions = actions;
        task = task.on(&host.name, work);
    }
    Ok(rollout.in_turns(task))
}

/// Whether a node that has joined has other settings than the file specifies, or none.
pub(crate) fn is_needed(inputs: &Inputs, host: &Host, facts: &Facts) -> bool {
    inputs.has_joined(host) && (note(inputs).check(facts).is_needed() || kubelet::lacks_settings(facts))
}

fn path() -> String {
    format!("{NOTES}/kubelet.yaml")
}

fn note(inputs: &Inputs) -> File {
    File::text(path(), kubeadm::kubelet_document(inputs))
}

#[cfg(test)]
mod tests {
    use kk_engine::{Apply, FileFact};

    use super::*;
    use crate::{capabilities::nodes::kubelets::rollout::of_kubelets, testing};

    /// The tasks planned on the first node, which has joined, if its settings have this content. Its note matches the file.
    async fn planned(settings: Option<&str>) -> String {
        let spec = testing::sample("all-in-one.yaml");
        let directory = tempfile::tempdir().unwrap();
        let session = testing::session(spec.clone(), directory.path());
        let mut probed = testing::fresh(&spec);
        let text = kubeadm::kubelet_document(&session.create_inputs(&probed).await.unwrap());
        let facts = probed.facts.values_mut().next().unwrap();
        let file = |text: &str| FileFact {
            sha256: kk_util::sha256(text),
            mode: "644".into(),
            owner: "root:root".into(),
            kind: "file".into(),
            ..FileFact::default()
        };
        for path in ["/etc/kubernetes/kubelet.conf", "/etc/kubernetes/pki/ca.crt"] {
            facts.files.insert(path.into(), file("same"));
        }
        facts.files.insert(path(), file(&text));
        if let Some(settings) = settings {
            facts.files.insert("/var/lib/kubelet/config.yaml".into(), file(settings));
        }
        let inputs = session.create_inputs(&probed).await.unwrap();
        let task = task(&inputs, &of_kubelets(&inputs).unwrap()).unwrap();
        let (host, facts) = inputs.nodes()[0];
        let needed = task.hosts[&host.name].actions.iter().filter(|action| action.check(facts).is_needed());
        let scripts = needed.map(|action| match action.apply(facts) {
            Apply::Script(script) => script.text,
            _ => panic!("no script"),
        });
        scripts.collect()
    }

    #[tokio::test]
    async fn settings_that_are_gone_or_empty_are_fetched_again_and_the_note_stays() {
        for (settings, fetched) in
            [(None, true), (Some(""), true), (Some("kind: KubeletConfiguration\n"), false)]
        {
            let text = planned(settings).await;
            assert_eq!(text.contains("upgrade node phase kubelet-config"), fetched, "{settings:?}: {text}");
            assert!(!text.contains("rm -f"), "{text}");
        }
    }
}
