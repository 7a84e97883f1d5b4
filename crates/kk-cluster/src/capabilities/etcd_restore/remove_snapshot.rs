//! Remove the snapshot from the members.

use kk_connector::quote;
use kk_engine::{HostWork, Task, actions::Command};

use super::Snapshot;
use crate::model::inputs::Inputs;

/// Removes a snapshot that was refused: it is large, and may contain the Secrets of a cluster.
pub(super) fn task(inputs: &Inputs, snapshot: &Snapshot) -> Task {
    let mut task = Task::new("remove_snapshot", "Remove the snapshot from the members");
    for (host, _) in super::members(inputs) {
        let remove = Command::new("remove the snapshot", format!("rm -f {}\n", quote(&snapshot.on_host())));
        task = task.on(&host.name, HostWork::new(vec![Box::new(remove)]));
    }
    task
}

#[cfg(test)]
mod tests {
    use std::fs;

    use kk_engine::{Apply, Change, Facts, FileFact};

    use super::{super::send_snapshot, *};
    use crate::{capabilities::etcd_restore::Content, testing};

    #[tokio::test]
    async fn what_was_sent_is_removed_from_every_member() {
        let (spec, workdir) = (testing::sample("three-nodes.yaml"), tempfile::tempdir().unwrap());
        let mut probed = testing::fresh(&spec);
        for facts in probed.facts.values_mut() {
            facts.files.insert("/etc/etcd.env".into(), FileFact::default());
        }
        let session = testing::session(spec, workdir.path());
        let inputs = session.create_inputs(&probed).await.unwrap();
        let (path, sha256, time) = ("a.db".into(), "ab".repeat(32), String::new());
        let snapshot = Snapshot { path, sha256, time, content: Content::default() };
        let (sent, removed) = (send_snapshot::task(&inputs, &snapshot), task(&inputs, &snapshot));
        assert!(!sent.hosts.is_empty() && sent.hosts.keys().eq(removed.hosts.keys()));
        for (host, work) in &sent.hosts {
            let Change::Needed(lines) = work.actions[0].check(&Facts::default()) else { panic!("{host}") };
            let target = lines[0].strip_prefix("upload /").unwrap();
            let root = tempfile::tempdir().unwrap();
            let (copy, other) =
                (root.path().join(target), root.path().join(target).with_file_name("other.db"));
            fs::create_dir_all(copy.parent().unwrap()).unwrap();
            fs::write(&copy, "").unwrap();
            fs::write(&other, "").unwrap();
            let Apply::Script(script) = removed.hosts[host].actions[0].apply(&Facts::default()) else {
                panic!("{host}")
            };
            let text = script.text.replace("/var/", &format!("{}/var/", root.path().display()));
            assert!(testing::run_script(root.path(), &text).status.success());
            assert!(!copy.exists() && other.exists(), "{host}: {}", script.text);
        }
    }
}
