//! Record the applied objects as the API returns them, so that the next probe detects objects that were edited or deleted since.

use std::collections::BTreeMap;

use kk_engine::{Action as _, Facts, HostWork, Task, actions::Command};
use kk_util::sha256;

use super::{applied_slot, apply_manifests};
use crate::{
    base::{
        cluster_state::{VERSION, object_list},
        host_layout::{KUBECTL, NOTES},
        requirements::{Manifest, Object},
        shell::script,
    },
    model::inputs::Inputs,
};

/// Runs in the background, because nothing waits for it. If a run is killed before this task, the next run applies the same
/// manifests again.
pub(super) fn task(inputs: &Inputs) -> Task {
    let task = Task::new("record_objects", "Record what was applied");
    let Some(facts) = inputs.facts(inputs.api_host) else { return task };
    let manifests = &inputs.requirements.manifests;
    // Objects that this run applies get another version.
    let is_unknown = |manifest: &&Manifest| {
        !is_recorded(&inputs.state.objects, manifest, facts)
            || apply_manifests::note(manifest).check(facts).is_needed()
    };
    let unknown: Vec<&Manifest> = manifests.iter().filter(is_unknown).collect();
    let record = record(&unknown)
        .when({
            let needed = !unknown.is_empty();
            move |_| needed
        })
        .reads(|probe| probe.files.extend(manifests.iter().map(note)));
    let work = HostWork::new(vec![Box::new(record)]).needs(applied_slot());
    task.background().on(&inputs.api_host.name, work)
}

/// Records the objects of these manifests.
pub(crate) fn record(unknown: &[&Manifest]) -> Command {
    let names = unknown.iter().map(|manifest| manifest.name).collect::<Vec<_>>().join(" ");
    let variables = [("names", names.as_str()), ("notes", NOTES), ("version", VERSION)];
    let text = format!("{KUBECTL}{}", script(&variables, include_str!("record_objects.sh")));
    let objects: Vec<&Object> = unknown.iter().flat_map(|manifest| &manifest.objects).collect();
    let mut record = Command::new("record the objects that were applied", text)
        .file("objects.yaml", object_list(objects).into_bytes())
        .reads(|probe| probe.files.extend(unknown.iter().map(|manifest| note(manifest))));
    for manifest in unknown {
        let keys: String = manifest.objects.iter().map(|object| object.key() + "\n").collect();
        record = record.file(format!("{}.keys", manifest.name), keys.into_bytes());
    }
    record
}

fn note(manifest: &Manifest) -> String {
    format!("{NOTES}/{}.objects", manifest.name)
}

/// Whether the API contains all objects of a manifest as they were after the manifest was last applied.
pub(crate) fn is_recorded(there: &BTreeMap<String, String>, manifest: &Manifest, facts: &Facts) -> bool {
    let line = |object: &Object| {
        let key = object.key();
        there.get(&key).map(|version| format!("{key}\t{version}\n"))
    };
    let Some(mut lines) = manifest.objects.iter().map(line).collect::<Option<Vec<String>>>() else {
        return false;
    };
    lines.sort();
    facts.files.get(&note(manifest)).is_some_and(|file| file.sha256 == sha256(lines.concat().as_bytes()))
}

#[cfg(test)]
mod tests {
    use std::{fs, process::Command};

    use kk_engine::{FileFact, Plan};

    use super::*;
    use crate::{
        base::cluster_state::{API, INITIALISED},
        commands::create_cluster,
        testing,
    };

    /// The answer of the API for all objects of a cluster, each at this version.
    fn answer(objects: &[Object], version: &str) -> String {
        let line = |object: &Object| format!("Object\t{}\t{version}\n", object.key());
        let lines = objects.iter().map(line).collect::<Vec<_>>().concat();
        format!("{lines}ConfigMap\tkube-system/kubeadm-config\nConfigMap\tkube-public/cluster-info\nend\n")
    }

    /// The manifests that are applied if the objects were recorded at "1" and the API gives this answer.
    async fn applied(spoil: impl Fn(&[Object]) -> String) -> Vec<String> {
        applied_after("", spoil).await
    }

    /// The same if the manifest of this name was different.
    async fn applied_after(changed: &str, spoil: impl Fn(&[Object]) -> String) -> Vec<String> {
        let spec = testing::sample("all-in-one.yaml");
        let directory = tempfile::tempdir().unwrap();
        let session = testing::session(spec.clone(), directory.path());
        let mut probed = testing::fresh(&spec);
        let (objects, notes) = {
            let inputs = session.create_inputs(&probed).await.unwrap();
            let manifests = &inputs.requirements.manifests;
            let mut notes = Vec::new();
            for manifest in manifests {
                let mut lines: Vec<String> =
                    manifest.objects.iter().map(|object| object.key() + "\t1\n").collect();
                lines.sort();
                notes.push((note(manifest), sha256(lines.concat().as_bytes())));
                let text = format!("{NOTES}/{}.yaml", manifest.name);
                let before = if manifest.name == changed { "before" } else { &manifest.note };
                notes.push((text, sha256(before.as_bytes())));
            }
            (manifests.iter().flat_map(|manifest| manifest.objects.clone()).collect::<Vec<_>>(), notes)
        };
        let facts = probed.facts.values_mut().next().unwrap();
        facts.reply(&INITIALISED, "yes");
        facts.reply(&API, spoil(&objects));
        for (path, sha256) in notes {
            let [kind, mode, owner] = ["file", "600", "root:root"].map(str::to_owned);
            let file = FileFact { sha256, kind, mode, owner, ..FileFact::default() };
            facts.files.insert(path, file);
        }
        let inputs = session.create_inputs(&probed).await.unwrap();
        let plan = Plan::new(create_cluster::pipeline(&inputs).unwrap(), &probed.facts).unwrap();
        let of_manifests = plan.changes().into_iter().filter(|task| task.module == "manifests");
        of_manifests.flat_map(|task| task.changes).collect()
    }

    const RECORD: &str = "record the objects that were applied";

    #[tokio::test]
    async fn what_the_file_changes_is_recorded_again() {
        for name in ["kube-proxy", "flannel", "coredns"] {
            let note = format!("write {NOTES}/{name}.yaml");
            let changes = applied_after(name, |objects| answer(objects, "1")).await;
            assert_eq!(changes, [format!("apply {name}"), note, RECORD.to_owned()]);
        }
    }

    #[tokio::test]
    async fn what_was_edited_or_lost_is_applied_again() {
        let none: [&str; 0] = [];
        assert_eq!(applied(|objects| answer(objects, "1")).await, none);
        let edited = |name: &'static str| {
            move |objects: &[Object]| {
                let there = answer(objects, "1");
                let line = there.lines().find(|line| line.contains(name)).unwrap();
                there.replace(line, &line.replace("\t1", "\t2"))
            }
        };
        for (object, manifest) in [
            ("ConfigMap kube-system/coredns", "coredns"),
            ("ClusterRole /system:coredns", "coredns"),
            ("DaemonSet kube-flannel/kube-flannel-ds", "flannel"),
            ("ConfigMap kube-system/kube-proxy", "kube-proxy"),
            ("ClusterRoleBinding /kubeadm:kubelet-bootstrap", "bootstrap"),
        ] {
            assert_eq!(applied(edited(object)).await, [format!("apply {manifest}"), RECORD.to_owned()]);
            let lost = |objects: &[Object]| {
                let there = answer(objects, "1");
                let line = there.lines().find(|line| line.contains(object)).unwrap();
                there.replace(&format!("{line}\n"), "")
            };
            assert_eq!(applied(lost).await, [format!("apply {manifest}"), RECORD.to_owned()]);
        }
    }

    /// The script writes the note that the next probe's answer is compared with.
    #[test]
    fn the_note_is_what_the_next_probe_compares() {
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| directory.path().join(name);
        let lines = "v1 ServiceAccount b/z\\t1\\nv1 ConfigMap a/x\\t2\\nv1 ConfigMap other/x\\t3\\n";
        testing::program(directory.path(), "kubectl", &format!("printf '{lines}'"));
        fs::write(path("m.keys"), "v1 ConfigMap a/x\nv1 ServiceAccount b/z\n").unwrap();
        let variables = [("names", "m"), ("notes", "notes"), ("version", VERSION)];
        let text = script(&variables, include_str!("record_objects.sh"));
        let status = Command::new("sh")
            .args(["-euc", &format!("kk_put() {{ mkdir -p notes; cp \"$1\" \"$2\"; }}\n{text}")])
            .current_dir(&directory)
            .env("PATH", format!("{}:/usr/bin:/bin", directory.path().display()))
            .status()
            .unwrap();
        assert!(status.success());
        let note = fs::read_to_string(path("notes/m.objects")).unwrap();
        assert_eq!(note, "v1 ConfigMap a/x\t2\nv1 ServiceAccount b/z\t1\n");
    }
}
