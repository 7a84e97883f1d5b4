//! Checks whether backups work.

use kk_config::Host;
use kk_engine::{Facts, Question, question};

use super::take_snapshot::is_backup;
use crate::{
    base::{findings::Findings, shell::script},
    model::inputs::Inputs,
};

/// The result of the last backup by the timer, as systemd reports it: one property per line.
pub(super) const LAST: Question<Vec<String>> =
    Question::new("etcd_backup", include_str!("last_backup.sh"), question::lines);

/// The name of the newest backup on a host.
pub(crate) const NEWEST: Question<String> = Question::new("newest_backup", "", question::text);

/// The question, for the backup directory that the file sets.
pub(super) fn newest(inputs: &Inputs) -> Question<String> {
    let directory = &inputs.spec.etcd.backup_dir;
    NEWEST.with_snippet(script(&[("directory", directory)], include_str!("newest_backup.sh")))
}

/// The newest backup on the hosts that answer, by the time in its name. An answer that is not the name of a backup is ignored: it
/// could be the name of another host's file on the control machine, or be sorted after all real names.
pub(crate) fn newest_backup<'a>(inputs: &Inputs<'a>) -> Option<(&'a Host, String)> {
    let of = |(host, facts): (&'a Host, &'a Facts)| {
        let name = facts.answer(&NEWEST).answered().filter(|name| is_backup(name))?;
        Some((host, name))
    };
    inputs.etcd_hosts().into_iter().filter_map(of).max_by(|one, other| one.1.cmp(&other.1))
}

/// Reports hosts that did not answer and may have a newer backup.
pub(crate) fn unanswered(inputs: &Inputs, found: &mut Findings) {
    for (host, facts) in inputs.etcd_hosts() {
        found.unanswered(host, &facts.answer(&NEWEST), "which backups it has");
    }
}

pub(super) fn findings(inputs: &Inputs, found: &mut Findings) {
    for (host, facts) in inputs.etcd_hosts() {
        let Some(last) = facts.answer(&LAST).answered() else { continue };
        let result = last.iter().find_map(|line| line.strip_prefix("Result="));
        if let Some(result) = result.filter(|result| *result != "success") {
            found.warning(
                host,
                format!("the last backup of etcd failed ({result})"),
                "see \"journalctl -u backup-etcd\" on this host; \"systemctl start backup-etcd\" makes one now",
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing;

    #[tokio::test]
    async fn a_host_cannot_choose_the_name_of_its_newest_backup() {
        let (first, second) = ("snapshot-20260801T020000Z.db", "snapshot-20260802T020000Z.db");
        for (answers, newest) in [
            ([first, second, ""], Some(second)),
            ([first, "zzz", "west-snapshot-20260901T020000Z.db"], Some(first)),
            (["zzz", "snapshot-../../20260901T.db", "snapshot-99999999T999999Z.db.db"], None),
        ] {
            let (spec, directory) = (testing::sample("three-nodes.yaml"), tempfile::tempdir().unwrap());
            let mut probed = testing::fresh(&spec);
            assert_eq!(spec.etcd_hosts().len(), answers.len());
            for (host, answer) in spec.etcd_hosts().into_iter().zip(answers) {
                probed.facts.get_mut(&host.name).unwrap().reply(&NEWEST, answer);
            }
            let session = testing::session(spec, directory.path());
            let inputs = session.create_inputs(&probed).await.unwrap();
            let found = newest_backup(&inputs).map(|(_, name)| name);
            assert_eq!(found.as_deref(), newest, "{answers:?}");
        }
    }

    #[tokio::test]
    async fn a_backup_that_failed_is_a_warning() {
        for (answer, warned) in [
            (Some("ExecMainStatus=0\nResult=success\n"), false),
            (Some("ExecMainStatus=1\nResult=exit-code\n"), true),
            (Some("ExecMainStatus=0\nResult=timeout\n"), true),
            (Some(""), false),
            (None, false),
        ] {
            let (spec, directory) = (testing::sample("all-in-one.yaml"), tempfile::tempdir().unwrap());
            let mut probed = testing::fresh(&spec);
            if let Some(answer) = answer {
                probed.facts.get_mut(&spec.hosts[0].name).unwrap().reply(&LAST, answer);
            }
            let session = testing::session(spec, directory.path());
            let mut found = Findings::default();
            findings(&session.create_inputs(&probed).await.unwrap(), &mut found);
            assert_eq!(found.0.len(), usize::from(warned), "{answer:?} {:?}", found.0);
        }
    }
}
