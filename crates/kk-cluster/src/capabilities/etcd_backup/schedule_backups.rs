//! Schedule backups of etcd.

use kk_config::{Host, Role};
use kk_engine::{
    Action, Facts, HostWork, Task,
    actions::{File, Unit, any_needed},
};
use serde_json::json;

use super::{path, program};
use crate::{
    base::error::BuildError,
    capabilities::etcd::{has_own_view, membership},
    model::{command::Command, inputs::Inputs},
};

/// The paths of the timer's units; the names are KubeKey's.
const SERVICE: &str = "/etc/systemd/system/backup-etcd.service";
pub(super) const TIMER: &str = "/etc/systemd/system/backup-etcd.timer";

/// The minutes between the first backups of two hosts, at most.
const APART: usize = 5;

/// On every host of etcd, so that the loss of one loses no backup. Their first backups are minutes apart
/// when the timers start together: each host has a minute by its place among the members, inside the period. A member that joins
/// or leaves changes the timers of the members after it, in the same command.
pub(super) fn task(inputs: &Inputs) -> Result<Task, BuildError> {
    let mut task = Task::new("schedule_backups", "Schedule backups of etcd").background();
    let mut members: Vec<_> =
        inputs.spec.etcd_hosts().into_iter().map(|host| host.internal_address).collect();
    members.sort();
    let period = inputs.spec.etcd.backup_period as usize;
    let apart = APART.min(period / members.len().max(1));
    let in_scope = inputs.etcd_hosts().into_iter().map(|(host, facts)| (host, facts, false));
    let joins = || inputs.spec.hosts.iter().any(|host| membership::is_new(inputs, host));
    let changes_places = match inputs.command {
        Command::Forget => true,
        Command::AddNodes => joins(),
        _ => false,
    };
    let stays = |(host, facts): &(&Host, &Facts)| {
        let is_outside = !inputs.scope.contains(host) && host.has_role(&Role::Etcd);
        changes_places && is_outside && facts.files.contains_key(TIMER)
    };
    let others = inputs.answered().into_iter().filter(stays).map(|(host, facts)| (host, facts, true));
    for (host, facts, only_timer) in in_scope.chain(others) {
        let position = members.iter().filter(|address| **address < host.internal_address).count();
        let values = json!({
            "script": path(inputs),
            "period": period,
            "own_view": has_own_view(facts, &inputs.spec.etcd.backup_dir),
            // Fifteen minutes after the start the cluster is there.
            "first": period.min(15) + apart * position,
        });
        let mut files: Vec<Box<dyn Action>> = Vec::new();
        if !only_timer {
            files.push(Box::new(File::text(path(inputs), program(inputs, host)).mode(0o700)));
            let service = inputs.templates.render("etcd/backup-etcd.service", &values)?;
            files.push(Box::new(File::text(SERVICE, service)));
        }
        files.push(Box::new(File::text(TIMER, inputs.templates.render("etcd/backup-etcd.timer", &values)?)));
        let changes = any_needed(&files, facts);
        let timer =
            Unit::running("backup-etcd.timer").force_restart(changes).restart_after([TIMER.to_owned()]);
        let mut actions = files;
        actions.push(Box::new(timer));
        task = task.on(&host.name, HostWork::new(actions));
    }
    Ok(task)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use kk_engine::{Apply, FileFact};

    use super::*;
    use crate::{
        capabilities::etcd::{JOINED, JOINED_TEXT},
        model::cluster::Scope,
        testing,
    };

    #[tokio::test]
    async fn members_that_stay_get_other_timers_when_another_one_joins_or_leaves() {
        let spec = testing::sample("three-nodes.yaml");
        let directory = tempfile::tempdir().unwrap();
        let (mut probed, session) = (testing::fresh(&spec), testing::session(spec, directory.path()));
        for facts in probed.facts.values_mut() {
            facts.files.insert(TIMER.into(), FileFact::default());
        }
        let joined = FileFact { sha256: kk_util::sha256(JOINED_TEXT.as_bytes()), ..FileFact::default() };
        for (command, member_joins, hosts) in [
            (Command::Forget, false, 3),
            (Command::AddNodes, true, 3),
            (Command::AddNodes, false, 0),
            (Command::Upgrade, true, 0),
        ] {
            for facts in probed.facts.values_mut() {
                facts.files.remove(JOINED);
            }
            let members = probed.facts.values_mut().skip(usize::from(member_joins));
            members.for_each(|facts| drop(facts.files.insert(JOINED.into(), joined.clone())));
            let mut inputs = session.create_inputs(&probed).await.unwrap();
            inputs.scope = Scope::Hosts(BTreeSet::new());
            inputs.command = command;
            let task = task(&inputs).unwrap();
            assert_eq!(task.hosts.len(), hosts, "{:?} {member_joins}", inputs.command);
            for work in task.hosts.values() {
                let changes: Vec<String> = work
                    .actions
                    .iter()
                    .map(|action| format!("{:?}", action.check(&Facts::default())))
                    .collect();
                assert!(changes.len() == 2 && changes[0].contains(TIMER), "{changes:?}");
            }
        }
    }

    #[tokio::test]
    async fn no_two_members_make_their_first_backups_at_the_same_minute() {
        for (period, wanted) in [(1440, [15, 20, 25]), (20, [15, 20, 25]), (10, [10, 13, 16]), (3, [3, 4, 5])]
        {
            let directory = tempfile::tempdir().unwrap();
            // One subnet for each zone, and the same number in each.
            let mut spec = testing::spec(
                "apiVersion: kubekey.kubesphere.io/v1alpha2\nkind: Cluster\nmetadata: {name: t}\nspec:\n  hosts:\n  \
                 - {name: a, address: 10.0.3.10}\n  - {name: b, address: 10.0.1.10}\n  - {name: c, address: 10.0.2.22}\n  \
                 roleGroups: {etcd: [a, b, c], control-plane: [a], worker: [a]}\n",
            );
            spec.etcd.backup_period = period;
            let (probed, session) = (testing::fresh(&spec), testing::session(spec, directory.path()));
            let task = task(&session.create_inputs(&probed).await.unwrap()).unwrap();
            let first = |work: &HostWork| {
                let Apply::Script(script) = work.actions[2].apply(&Facts::default()) else {
                    panic!("no timer")
                };
                let timer = String::from_utf8_lossy(&script.files[0].content).into_owned();
                timer.lines().find_map(|line| line.strip_prefix("OnActiveSec=").map(str::to_owned)).unwrap()
            };
            let minutes: BTreeSet<String> = task.hosts.values().map(first).collect();
            assert_eq!(minutes, wanted.map(|minute| format!("{minute}min")).into(), "{period}");
        }
    }
}
