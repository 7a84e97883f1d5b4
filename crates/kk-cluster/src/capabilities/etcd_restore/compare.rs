//! Checks whether a snapshot is from the cluster that is to be restored, and what would be lost.

use kk_config::Host;
use kk_engine::{Question, question};

use super::{Content, Snapshot, taken_at};
use crate::{
    base::{api_server, findings::Findings, host_layout::CLUSTER_CA, shell::script},
    capabilities::etcd_backup::newest_backup,
    model::inputs::Inputs,
};

/// The UID of the namespace kube-system.
pub(crate) const UID: Question<String> = Question::new("cluster_uid", "", question::text);

/// The question to a control plane.
pub(crate) fn uid_question(host: &Host) -> Question<String> {
    let server = api_server::url(host);
    UID.with_snippet(script(&[("server", &server)], include_str!("ask_uid.sh")))
}

/// Revisions that a restore skips are no changes (`restore_member.sh`).
const SKIPPED: u64 = 1_000_000_000;

/// Reports what the user should know about a snapshot before a restore. `uid` is the UID of the cluster, if its API answers;
/// `revision` is the last revision of its etcd, if a member answers. With `force`, a snapshot of another cluster is not an error.
pub(crate) fn findings(
    inputs: &Inputs,
    snapshot: &Snapshot,
    uid: Option<&str>,
    revision: Option<u64>,
    force: bool,
    found: &mut Findings,
) {
    let is_other = |message: String, found: &mut Findings| {
        if force {
            found.warning(None, message, "with --force it is restored anyway");
        } else {
            found.error(None, message, "choose a snapshot of this cluster; --force restores this one anyway");
        }
    };
    match origin(inputs, &snapshot.content, uid) {
        Origin::Same => {}
        Origin::Other(why) => is_other(format!("the snapshot is from another cluster: {why}"), found),
        Origin::None => is_other(
            "the snapshot is not from a Kubernetes cluster: it has no namespace kube-system".to_owned(),
            found,
        ),
        Origin::Unknown => found.warning(
            None,
            "it is not known whether the snapshot is from this cluster: neither its API nor a file with its \
             CA is available",
            "make sure that it is",
        ),
    }
    let ends = snapshot.content.revision;
    if let Some(now) = revision.filter(|now| *now > ends) {
        found.warning(
            None,
            format!("etcd has newer data: it is at revision {now}, and the snapshot ends at {ends}"),
            "changes after the snapshot are lost; to save them, run kk etcd snapshot first",
        );
    }
    let time = |name: &str| taken_at(name.as_ref());
    let own = snapshot.path.file_name().and_then(|name| time(name.to_str()?));
    if let Some((host, name)) = newest_backup(inputs).filter(|(_, name)| own.is_some() && time(name) > own) {
        found.warning(
            host,
            format!("it has a newer backup: {name}"),
            "without --snapshot the newest one is restored",
        );
    }
}

/// The text of the question before the restore.
pub(crate) fn loss(snapshot: &Snapshot, revision: Option<u64>) -> String {
    let ends = snapshot.content.revision;
    match revision {
        None => format!("revision {ends}; no member of etcd answers, so the lost changes are not known"),
        Some(now) if now <= ends => format!("revision {ends}; etcd is at {now}"),
        Some(now) if now - ends >= SKIPPED => {
            format!("revision {ends}; etcd is at {now}, because it was restored after the snapshot")
        }
        Some(now) => format!("revision {ends}; etcd is at {now}, {} changes later", now - ends),
    }
}

/// The cluster from which a snapshot is.
enum Origin {
    Same,
    /// It is from another cluster; the text is the evidence.
    Other(String),
    /// It contains nothing of Kubernetes.
    None,
    Unknown,
}

/// Compares the UIDs if both are known, otherwise the CAs, which nodes keep even if all data is lost.
fn origin(inputs: &Inputs, content: &Content, uid: Option<&str>) -> Origin {
    if !content.is_kubernetes {
        return Origin::None;
    }
    if let Some((of_snapshot, own)) = content.uid.as_deref().zip(uid) {
        if of_snapshot == own {
            return Origin::Same;
        }
        let why = format!("its namespace kube-system has the UID {of_snapshot}, here it is {own}");
        return Origin::Other(why);
    }
    let ca = |host: &Host| inputs.facts(host)?.files.get(CLUSTER_CA).map(|file| file.sha256.clone());
    let own: Vec<String> = inputs.spec.nodes().into_iter().filter_map(ca).collect();
    match &content.ca {
        Some(_) if own.is_empty() => Origin::Unknown,
        None => Origin::Unknown,
        Some(ca) if own.contains(ca) => Origin::Same,
        Some(_) => Origin::Other(
            "it has another CA than the nodes, unless it is from before kk certs rotate-ca".into(),
        ),
    }
}

#[cfg(test)]
mod tests {
    use kk_engine::{FileFact, Finding, Severity};

    use super::*;
    use crate::testing;

    fn snapshot(uid: Option<&str>, ca: Option<&str>) -> Snapshot {
        let content = Content {
            revision: 587,
            is_kubernetes: true,
            uid: uid.map(str::to_owned),
            ca: ca.map(str::to_owned),
        };
        Snapshot {
            path: "n1-snapshot-20260801T020000Z.db".into(),
            sha256: String::new(),
            time: String::new(),
            content,
        }
    }

    /// The findings if a node has a CA with this checksum, and a host has this backup.
    async fn found(
        snapshot: &Snapshot,
        cluster: (Option<&str>, Option<&str>),
        revision: Option<u64>,
        force: bool,
        backup: &str,
    ) -> Vec<Finding> {
        let (spec, directory) = (testing::sample("all-in-one.yaml"), tempfile::tempdir().unwrap());
        let mut probed = testing::fresh(&spec);
        let facts = probed.facts.values_mut().next().unwrap();
        facts.reply(&crate::capabilities::etcd_backup::NEWEST, backup);
        if let Some(ca) = cluster.1 {
            facts.files.insert(CLUSTER_CA.into(), FileFact { sha256: ca.into(), ..FileFact::default() });
        }
        let session = testing::session(spec, directory.path());
        let inputs = session.create_inputs(&probed).await.unwrap();
        let mut found = Findings::default();
        findings(&inputs, snapshot, cluster.0, revision, force, &mut found);
        found.0
    }

    #[tokio::test]
    async fn a_snapshot_of_another_cluster_is_refused_unless_it_is_forced() {
        let other = "the snapshot is from another cluster";
        for (of_snapshot, cluster, severity, words) in [
            ((Some("a"), Some("x")), (Some("a"), Some("y")), None, ""),
            ((Some("a"), Some("x")), (Some("b"), Some("x")), Some(Severity::Error), other),
            ((Some("a"), Some("x")), (None, Some("x")), None, ""),
            ((Some("a"), Some("x")), (None, Some("y")), Some(Severity::Error), other),
            ((Some("a"), Some("x")), (None, None), Some(Severity::Warning), "is not known"),
            ((Some("a"), None), (None, Some("x")), Some(Severity::Warning), "is not known"),
            ((None, None), (Some("b"), Some("x")), Some(Severity::Warning), "is not known"),
        ] {
            let snapshot = snapshot(of_snapshot.0, of_snapshot.1);
            let found = found(&snapshot, cluster, None, false, "").await;
            assert_eq!(
                found.first().map(|one| one.severity),
                severity,
                "{of_snapshot:?} {cluster:?} {found:?}"
            );
            assert!(found.iter().all(|one| one.message.contains(words)), "{found:?}");
        }
        let empty = Snapshot { content: Content::default(), ..snapshot(None, None) };
        for (force, severity) in [(false, Severity::Error), (true, Severity::Warning)] {
            for snapshot in [&snapshot(Some("a"), None), &empty] {
                let found = found(snapshot, (Some("b"), None), None, force, "").await;
                assert_eq!(found[0].severity, severity, "{found:?}");
            }
        }
    }

    #[tokio::test]
    async fn what_is_newer_than_the_snapshot_is_said() {
        let same = (Some("a"), None);
        let snapshot = snapshot(Some("a"), None);
        for (revision, backup, words) in [
            (Some(587), "", None),
            (None, "", None),
            (Some(600), "", Some("it is at revision 600, and the snapshot ends at 587")),
            (
                None,
                "snapshot-20260801T020001Z.db",
                Some("it has a newer backup: snapshot-20260801T020001Z.db"),
            ),
            (None, "snapshot-20260801T020000Z.db", None),
        ] {
            let found = found(&snapshot, same, revision, false, backup).await;
            assert_eq!(found.len(), usize::from(words.is_some()), "{found:?}");
            assert!(found.iter().all(|one| one.message.contains(words.unwrap())), "{found:?}");
        }
        for (revision, words) in [
            (None, "no member of etcd answers"),
            (Some(500), "revision 587; etcd is at 500"),
            (Some(600), "etcd is at 600, 13 changes later"),
            (Some(1_764_000_000_000), "because it was restored after the snapshot"),
        ] {
            assert!(loss(&snapshot, revision).contains(words), "{}", loss(&snapshot, revision));
        }
    }
}
