//! Restore the members of etcd.

use std::time::Duration;

use kk_config::Host;
use kk_connector::quote;
use kk_engine::{HostWork, Task, actions::Command};

use super::{Snapshot, after, of_members};
use crate::{
    base::{shell::script, slots},
    capabilities::etcd,
    model::inputs::Inputs,
};

/// Restores all members as members of a new etcd cluster. The name of this cluster differs from the previous one, so that a
/// member with the old history cannot belong to it.
pub(super) fn task(inputs: &Inputs, snapshot: &Snapshot) -> Task {
    let mut task =
        Task::new("restore_members", "Restore the members of etcd").timeout(Duration::from_mins(30));
    let etcd = &inputs.spec.etcd;
    // The target revision is the time in milliseconds, the same for all members: no cluster writes that fast for long.
    let target = time::OffsetDateTime::now_utc().unix_timestamp_nanos() / 1_000_000;
    let peer = |host: &Host| format!("https://{}:{}", host.internal_address, etcd.peer_port);
    let all: Vec<_> =
        super::members(inputs).iter().map(|(host, _)| format!("etcd-{}={}", host.name, peer(host))).collect();
    for (host, _) in super::members(inputs) {
        let variables = [
            ("snapshot", snapshot.on_host()),
            ("name", format!("etcd-{}", host.name)),
            ("peer", peer(host)),
            ("members", all.join(",")),
            ("token", format!("kubekey-{}-{}", inputs.spec.name, inputs.token.id)),
            ("target", target.to_string()),
            ("data", etcd.data_dir.clone()),
        ];
        let variables: Vec<_> = variables.iter().map(|(name, value)| (*name, value.as_str())).collect();
        let text = format!(
            "{}kk_put joined.env {} 644 root:root\n",
            script(&variables, include_str!("restore_member.sh")),
            quote(etcd::JOINED)
        );
        let restore = Command::new("replace the data of etcd by the snapshot", text)
            .file("joined.env", etcd::JOINED_TEXT.as_bytes())
            .hint("No space left", "make room on this host, then run again");
        let work = HostWork::new(vec![Box::new(restore)]).provides(slots::member_restored_slot(&host.name));
        task = task.on(&host.name, after(work, of_members(inputs, slots::member_stopped_slot)));
    }
    task
}

#[cfg(test)]
mod tests {
    use std::{fs, path::Path};

    use crate::testing;

    fn restore(directory: &Path, etcdutl: &str) -> bool {
        let here = directory.display().to_string();
        testing::program(directory, "etcdutl", etcdutl);
        let data = format!("{here}/data");
        let variables = [
            ("snapshot", "s.db"),
            ("name", "etcd-a"),
            ("peer", "https://a:2380"),
            ("members", "etcd-a=https://a:2380"),
            ("token", "t"),
            ("target", "1800000000000"),
            ("data", data.as_str()),
        ];
        let text = crate::base::shell::script(&variables, include_str!("restore_member.sh"));
        let output = testing::run_script(directory, &text);
        output.status.success()
    }

    const WORKS: &str = "case \"$*\" in *--help*) exit ;; esac\nfor last; do :; done; mkdir -p \"$last/member\"; echo new >\"$last/member/db\"";

    fn names(directory: &Path) -> Vec<String> {
        let entries = fs::read_dir(directory.join("data")).unwrap();
        let mut names: Vec<_> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn the_data_of_before_is_kept_once_however_often_it_is_run() {
        let directory = tempfile::tempdir().unwrap();
        let data = directory.path().join("data");
        fs::create_dir_all(data.join("member")).unwrap();
        fs::write(data.join("member/db"), "old").unwrap();
        for _ in 0..3 {
            assert!(restore(directory.path(), WORKS));
            let names = names(directory.path());
            assert!(
                names.len() == 2 && names[0] == "member" && names[1].starts_with("member-before-"),
                "{names:?}"
            );
            assert_eq!(fs::read_to_string(data.join("member/db")).unwrap(), "new\n");
            assert_eq!(fs::read_to_string(data.join(&names[1]).join("db")).unwrap(), "old");
        }
    }

    #[test]
    fn data_stays_when_the_snapshot_cannot_be_restored() {
        let directory = tempfile::tempdir().unwrap();
        let data = directory.path().join("data");
        fs::create_dir_all(data.join("member")).unwrap();
        fs::write(data.join("member/db"), "old").unwrap();
        assert!(!restore(directory.path(), "exit 1"));
        assert_eq!(fs::read_to_string(data.join("member/db")).unwrap(), "old");
    }

    #[test]
    fn revisions_go_on_after_those_of_an_earlier_restore() {
        for (revision, bump) in [("42", "1799999999958"), ("1800000000005", "1000000000")] {
            let directory = tempfile::tempdir().unwrap();
            let etcdutl = format!(
                "case \"$*\" in *--help*) echo ' --bump-revision uint'; exit ;; *status*) echo '{{\"revision\":{revision}}}'; exit ;; esac\necho \"$*\" >calls\n{WORKS}"
            );
            assert!(restore(directory.path(), &etcdutl));
            let calls = fs::read_to_string(directory.path().join("calls")).unwrap();
            assert!(calls.contains(&format!("--bump-revision {bump} --mark-compacted")), "{calls}");
        }
    }
}
