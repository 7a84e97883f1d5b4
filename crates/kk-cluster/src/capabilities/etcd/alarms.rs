//! Handles alarms of etcd. With the alarm NOSPACE, which means that a database has reached its quota, members serve only reads.

use std::collections::BTreeSet;

use kk_config::{Etcd, Host};
use kk_engine::{Facts, actions::Command};

use super::{
    etcdctl::{certificate, function, local_endpoint},
    member_status::STATUS,
    membership::healthy,
};
use crate::{
    base::{findings::Findings, shell::script},
    model::inputs::Inputs,
};

const NOSPACE: &str = "NOSPACE";

/// The default quota of etcd.
const DEFAULT_QUOTA: u64 = 2 << 30;

/// The kinds of alarms that members report. Each member knows the alarms of all members.
pub(crate) fn all(inputs: &Inputs) -> BTreeSet<String> {
    let of = |facts: &Facts| facts.answer(&STATUS).answered().map_or_else(Vec::new, |member| member.errors);
    let errors = inputs.answered().into_iter().flat_map(|(_, facts)| of(facts));
    errors
        .filter_map(|error| Some(error.split_once("alarm:")?.1.trim().to_owned()))
        .filter(|kind| !kind.is_empty())
        .collect()
}

/// Whether etcd refuses writes because a database has reached its quota.
pub(super) fn is_full(inputs: &Inputs) -> bool {
    all(inputs).contains(NOSPACE)
}

/// The quota that the file sets. `extraArgs` cannot set a quota. etcd treats 0 as its default quota.
pub(crate) fn set_quota(etcd: &Etcd) -> Option<u64> {
    etcd.quota_backend_bytes.filter(|bytes| *bytes > 0)
}

fn quota(inputs: &Inputs) -> u64 {
    set_quota(&inputs.spec.etcd).unwrap_or(DEFAULT_QUOTA)
}

/// Whether the alarm can be disarmed: each known database is smaller than the quota that the file sets.
fn is_free(inputs: &Inputs) -> bool {
    let (quota, members) = (quota(inputs), inputs.answered().into_iter());
    let mut sizes = members.filter_map(|(_, facts)| Some(facts.answer(&STATUS).answered()?.db_bytes));
    is_full(inputs) && sizes.all(|bytes| bytes < quota)
}

pub(super) fn findings(inputs: &Inputs, found: &mut Findings) {
    if is_free(inputs) {
        found.adapted(
            None,
            "etcd refuses writes because its database was full (alarm NOSPACE); it has space again",
            "the alarm is disarmed",
        );
    } else if is_full(inputs) {
        let message = format!(
            "the database of etcd has reached its quota of {} MiB: it refuses writes (alarm NOSPACE)",
            quota(inputs) >> 20
        );
        let hint = "kk etcd defrag frees space; a larger spec.etcd.quotaBackendBytes is applied by kk create cluster";
        // A create may raise the quota, and a renewal writes little.
        if inputs.command.is_create() || !inputs.command.renewed().is_empty() {
            found.warning(None, message, hint);
        } else {
            found.error(None, message, hint);
        }
    }
    for kind in all(inputs).into_iter().filter(|kind| kind != NOSPACE) {
        found.warning(
            None,
            format!("etcd has the alarm {kind}"),
            "see \"journalctl -u etcd\" on the hosts of etcd; kk etcd restore rebuilds etcd from a snapshot",
        );
    }
}

/// Disarms the alarm once the member of this host runs with the settings of the file. A member that keeps a smaller quota until
/// its own turn may raise the alarm again.
pub(super) fn disarm(inputs: &Inputs, host: &Host) -> Option<Command> {
    is_free(inputs).then(|| disarm_when_free(inputs, host))
}

/// The same, whatever the sizes of the databases were.
pub(super) fn disarm_when_free(inputs: &Inputs, host: &Host) -> Command {
    let mut members = healthy(inputs);
    members.retain(|member| member.name != host.name);
    members.push(host);
    let endpoint = |member: &Host| format!("https://{}:{}", member.internal_address, inputs.spec.etcd.port);
    let members = members.into_iter().map(endpoint).collect::<Vec<_>>().join(",");
    let (endpoints, certificate) = (local_endpoint(inputs.spec), certificate(host));
    let variables =
        [("endpoints", endpoints.as_str()), ("certificate", certificate.as_str()), ("members", &members)];
    let text = [&function("--command-timeout 5s"), include_str!("disarm_alarm.sh")].concat();
    Command::new("disarm the alarm of a full database", script(&variables, &text))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use kk_engine::Severity;

    use super::*;
    use crate::{
        capabilities::etcd::{defragment, health::HEALTHY, start_etcd},
        commands::etcd::{defragment as command, snapshot},
        testing,
    };

    /// The status that a member with a database of this size reports.
    fn status(bytes: u64, alarm: &str) -> String {
        format!(
            r#"[{{"Status":{{"header":{{"cluster_id":1,"member_id":7,"revision":42}},"version":"3.6.16","leader":7,"dbSize":{bytes},"errors":["memberID:7 alarm:{alarm} "]}}}}]"#
        )
    }

    /// Severities of the findings of a create with a database of this size, and whether the turns of etcd disarm the alarm.
    async fn planned(bytes: u64, alarm: &str, upgrades: bool) -> (Vec<Severity>, bool) {
        let (mut spec, directory) = (testing::sample("three-nodes.yaml"), tempfile::tempdir().unwrap());
        spec.etcd.quota_backend_bytes = Some(1000);
        let mut probed = testing::fresh(&spec);
        for facts in probed.facts.values_mut() {
            facts.reply(&HEALTHY, "yes");
            facts.reply(&STATUS, status(bytes, alarm));
        }
        let session = testing::session(spec, directory.path());
        let mut inputs = session.create_inputs(&probed).await.unwrap();
        if upgrades {
            inputs.command = crate::model::command::Command::Upgrade;
        }
        let mut found = Findings::default();
        findings(&inputs, &mut found);
        // A snapshot and a defragmentation are possible with such a database.
        let mut others = Findings::default();
        snapshot::findings(&inputs, &mut others);
        command::findings(&inputs, &mut others);
        assert!(others.0.is_empty(), "{:?}", others.0);
        let has = |task: kk_engine::Task| {
            let is_planned = |work: kk_engine::HostWork| {
                let lines =
                    work.actions.iter().map(|action| format!("{:?}", action.check(&Facts::default())));
                lines.collect::<String>().contains("disarm the alarm")
            };
            task.hosts.into_values().all(is_planned)
        };
        assert_eq!(has(defragment::task(&inputs, &[])), alarm == NOSPACE);
        (found.0.iter().map(|one| one.severity).collect(), has(start_etcd::task(&inputs).unwrap()))
    }

    #[tokio::test]
    async fn a_full_database_is_named_and_its_alarm_goes_when_the_quota_is_larger() {
        for (bytes, alarm, upgrades, expected) in [
            (1000, NOSPACE, false, (vec![Severity::Warning], false)),
            (1000, NOSPACE, true, (vec![Severity::Error], false)),
            (999, NOSPACE, false, (vec![Severity::Adapted], true)),
            (1000, "CORRUPT", false, (vec![Severity::Warning], false)),
            (1000, "", false, (vec![], false)),
        ] {
            assert_eq!(planned(bytes, alarm, upgrades).await, expected, "{bytes} {alarm} {upgrades}");
        }
    }

    /// Runs a script with an etcd that has these alarms, and databases of 500 and `bytes` bytes. Returns whether it succeeds, and
    /// its requests.
    fn run(text: &str, alarms: &str, bytes: u64) -> (bool, String) {
        let directory = tempfile::tempdir().unwrap();
        let status = format!(r#"[{{"dbSize":500,"revision":42}},{{"dbSize":{bytes},"x":1}}]"#);
        let etcdctl = format!(
            "case \"$*\" in\n*' alarm list') echo '{alarms}' ;;\n*' status '*) echo '{status}' ;;\n\
             *' compact '*) echo compact >>calls; echo 'required revision has been compacted' >&2; exit 1 ;;\n\
             *) for last; do :; done; echo $last >>calls ;;\nesac"
        );
        testing::program(directory.path(), "etcdctl", &etcdctl);
        fs::create_dir(directory.path().join("etc")).unwrap();
        fs::write(directory.path().join("etc/etcd.env"), "ETCD_QUOTA_BACKEND_BYTES=1000\n").unwrap();
        let library =
            "KK_ROOT=.\nkk_fail() { echo \"$*\" >&2; return 1; }\nkk_note() { echo \"$*\" >>notes; }\n";
        let text = format!("{library}endpoints=e members=a,b certificate=c\n{}{text}", function(""));
        let output = testing::run_script(directory.path(), &text);
        (output.status.success(), fs::read_to_string(directory.path().join("calls")).unwrap_or_default())
    }

    #[test]
    fn the_alarm_is_disarmed_only_when_all_have_space_and_no_other_alarm_is_there() {
        let text = include_str!("disarm_alarm.sh");
        for (alarms, bytes, expected) in [
            ("memberID:7 alarm:NOSPACE ", 999, (true, "disarm\n")),
            ("memberID:7 alarm:NOSPACE ", 1000, (true, "")),
            ("", 999, (true, "")),
            ("memberID:7 alarm:NOSPACE \nmemberID:8 alarm:CORRUPT ", 999, (false, "")),
        ] {
            let (ok, calls) = run(text, alarms, bytes);
            assert_eq!((ok, calls.as_str()), expected, "{alarms} {bytes}");
        }
    }

    #[test]
    fn a_full_database_loses_its_history_before_it_is_defragmented() {
        for (full, calls) in [("yes", "compact\ndefrag\n"), ("", "defrag\n")] {
            let text = script(&[("full", full)], include_str!("defragment.sh"));
            assert_eq!(run(&text, "", 1), (true, calls.to_owned()));
        }
    }
}
