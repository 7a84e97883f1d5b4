//! Start etcd, and wait until it is healthy.

use std::time::Duration;

use kk_artifact::Component;
use kk_config::Host;
use kk_engine::{
    Action, Facts, HostWork, Task, Turn,
    actions::{Unit, WaitUntil, any_needed},
};

use super::{
    alarms,
    check::DATA,
    files::{START, files, joined, mount_note},
    health::{self, is_healthy},
    is_active, join_member, membership, moves,
};
use crate::{
    base::{error::BuildError, slots},
    capabilities::programs::{self, UPLOAD_TIMEOUT},
    model::{command::Command, inputs::Inputs},
};

/// The maximum time between the start of a member and its healthy state.
const SETTLES: Duration = Duration::from_mins(2);

/// The longest time from the start of a member until it is healthy: kk waits longer than systemd does.
pub(super) const STARTS: Duration = START.saturating_add(SETTLES);

/// The maximum duration of a task that starts members and waits for them.
pub(crate) const START_TASK: Duration = STARTS.saturating_add(Duration::from_secs(30));

/// The maximum time until the other members are healthy before a member is restarted.
const OTHERS: Duration = Duration::from_mins(2);

/// A new cluster starts on all hosts at once, when all hosts are prepared, because a member is ready only when most of the others
/// are. In a running cluster, members are changed one by one, so that etcd answers in the meantime, and a setting with which etcd
/// cannot start affects only one member. Members that are not healthy are first: while a member is down, the restart of another
/// one may cost the quorum.
///
/// The task runs in the background, because few tasks depend on it: tasks of control planes, and the removal of the notes of
/// moves.
pub(super) fn task(inputs: &Inputs) -> Result<Task, BuildError> {
    let turn = turn(inputs);
    let one_by_one = turn.is_some();
    // The longest time that one of the hosts needs.
    let mut timeout = OTHERS + START_TASK;
    let mut task = Task::new("start_etcd", "Start etcd").background();
    if let Some(turn) = turn {
        task = task.turn(turn);
    }
    let hosts = inputs.etcd_hosts();
    for &(host, facts) in &hosts {
        if join_member::joins(inputs, facts) {
            continue;
        }
        let unit = unit(inputs, host, facts)?;
        let unit = if one_by_one { unit } else { unit.no_block() };
        let is_needed = unit.check(facts).is_needed();
        let stays = is_active(facts) && !is_needed;
        // A member may take long to read its data, and a start that does not block returns before that.
        let wait = if one_by_one || facts.answer(&DATA).answered() != Some(true) {
            wait(inputs, host)
        } else {
            wait_for_start(inputs, host)
        };
        let wait = wait.done_by(move |facts| stays && is_healthy(facts));
        // A member that gets no turn must start with its old settings.
        let mut actions: Vec<Box<dyn Action>> = Vec::new();
        // The binary is first, because its upload may take minutes, and the current binary does not start with other settings.
        let fetched = programs::replace_in_turn(inputs, host, Component::Etcd, &mut actions);
        if fetched.is_some() {
            timeout = timeout.max(UPLOAD_TIMEOUT);
        }
        if one_by_one && is_needed && is_healthy(facts) {
            actions.extend(others(inputs, host).map(|others| Box::new(others) as Box<dyn Action>));
        }
        let is_moving = moves::from(inputs, host, facts).is_some();
        let tell = |is_running| if is_moving { moves::tell(inputs, host, is_running) } else { None };
        actions.extend(tell(false).map(|tell| Box::new(tell) as Box<dyn Action>));
        if is_active(facts) {
            actions.extend(files(inputs, host, facts)?);
        }
        actions.push(Box::new(unit));
        if one_by_one && membership::has_quorum(inputs) && !is_healthy(facts) {
            actions.push(Box::new(join_member::promote(inputs, host)));
            timeout = timeout.max(join_member::COPIES * 2 + UPLOAD_TIMEOUT);
        }
        actions.push(Box::new(wait));
        actions.extend(tell(true).map(|tell| Box::new(tell) as Box<dyn Action>));
        actions.extend(alarms::disarm(inputs, host).map(|disarm| Box::new(disarm) as Box<dyn Action>));
        actions.push(Box::new(joined()));
        actions.extend(mount_note(facts).map(|note| Box::new(note) as Box<dyn Action>));
        let mut work = HostWork::new(actions).provides(slots::etcd_healthy_slot(&host.name));
        work.needs.extend(fetched);
        let together = hosts.iter().filter(|(member, _)| !one_by_one || member.name == host.name);
        for (member, _) in together {
            work = work
                .needs(slots::etcd_configured_slot(&member.name))
                .needs(slots::runtime_programs_slot(&member.name));
        }
        task = task.on(&host.name, work);
    }
    Ok(task.timeout(timeout))
}

/// The turns of members in a running cluster.
pub(super) fn turn(inputs: &Inputs) -> Option<Turn> {
    let hosts = inputs.etcd_hosts();
    let sick = hosts.iter().filter(|(_, facts)| !is_healthy(facts)).map(|(host, _)| host.name.clone());
    membership::runs(inputs).then(|| Turn::one_by_one("etcd").order(sick))
}

/// Waits until the other members are healthy: one of them may have failed since the probe, and a restart would then leave etcd
/// without a quorum. Members that were unhealthy at the time of the probe do not count: they have had their turns, or their hosts
/// do not answer and the quorum can spare them. In an upgrade, all other members count, because their turns are not part of this
/// run. A host that is rolled back does not wait.
fn others(inputs: &Inputs, host: &Host) -> Option<WaitUntil> {
    if inputs.command == Command::RollBack {
        return None;
    }
    let mut others = if inputs.command == Command::Upgrade {
        inputs.spec.etcd_hosts()
    } else {
        membership::healthy(inputs)
    };
    // Until its own turn, a moving member is not at the address that the file sets.
    let moves = |other: &Host| inputs.facts(other).and_then(|facts| moves::from(inputs, other, facts));
    others.retain(|other| other.name != host.name && moves(other).is_none());
    let condition = health::of_others(inputs.spec, host, &others)?;
    let wait = WaitUntil::new("the other members of etcd are healthy", condition).within(OTHERS);
    Some(wait.hint(
        "",
        "a restart of this one could cost the quorum; see \"journalctl -u etcd\" on the other hosts",
    ))
}

/// Waits until the member is healthy.
pub(crate) fn wait(inputs: &Inputs, host: &Host) -> WaitUntil {
    WaitUntil::new("etcd is healthy", health::command(inputs.spec, host)).within(SETTLES).hint(
        "",
        "see \"journalctl -u etcd\" on the hosts of etcd; most members must run and reach each other on their peer port",
    )
}

/// The same, after a start that does not block.
pub(crate) fn wait_for_start(inputs: &Inputs, host: &Host) -> WaitUntil {
    wait(inputs, host).within(STARTS)
}

/// The unit restarts for changes of this run, and for changes that a killed run made.
pub(super) fn unit(inputs: &Inputs, host: &Host, facts: &Facts) -> Result<Unit, BuildError> {
    let changes =
        any_needed(&files(inputs, host, facts)?, facts) || programs::changes(inputs, host, Component::Etcd);
    Ok(Unit::running("etcd.service").force_restart(changes).restart_after([
        "/etc/etcd.env".to_owned(),
        "/etc/systemd/system/etcd.service".to_owned(),
        "/usr/local/bin/etcd".to_owned(),
    ]))
}

#[cfg(test)]
mod tests {
    use kk_engine::{Apply, UnitFact};

    use super::*;
    use crate::testing;

    /// The task on three hosts. Either all run etcd or none does, and the second member is not healthy.
    async fn planned(runs: bool) -> Task {
        planned_with(runs, |_| {}).await
    }

    async fn planned_with(runs: bool, change: fn(&mut Inputs)) -> Task {
        let spec = testing::sample("three-nodes.yaml");
        let (mut probed, directory) = (testing::fresh(&spec), tempfile::tempdir().unwrap());
        for (index, host) in spec.etcd_hosts().iter().enumerate() {
            let facts = probed.facts.get_mut(&host.name).unwrap();
            facts.units.insert("etcd.service".into(), UnitFact { active: runs, ..UnitFact::default() });
            facts.reply(&health::HEALTHY, if index == 1 || !runs { "no" } else { "yes" });
        }
        let session = testing::session(spec, directory.path());
        let mut inputs = session.create_inputs(&probed).await.unwrap();
        change(&mut inputs);
        task(&inputs).unwrap()
    }

    #[tokio::test]
    async fn a_healthy_member_is_restarted_only_beside_healthy_ones() {
        type Case = (fn(&mut Inputs), &'static [bool], bool);
        // The second member is not healthy at the time of the probe: in a create, its own turn is first.
        let cases: [Case; 3] = [
            (|inputs| inputs.command = Command::Upgrade, &[true, false, true], true),
            (|_| {}, &[true, false, true], false),
            (|inputs| inputs.command = Command::RollBack, &[false; 3], false),
        ];
        let spec = testing::sample("three-nodes.yaml");
        let address = |index: usize| format!("https://{}:2379", spec.etcd_hosts()[index].internal_address);
        for (change, waits, asks_the_sick) in cases {
            let task = planned_with(true, change).await;
            for (index, work) in task.hosts.values().enumerate() {
                // The wait is right before the settings, after the upload of the binary.
                let line = format!("{:?}", work.actions[1].check(&Facts::default()));
                assert_eq!(line.contains("the other members of etcd"), waits[index], "{line}");
                if waits[index] {
                    let Apply::Script(script) = work.actions[1].apply(&Facts::default()) else {
                        panic!("{line}")
                    };
                    let condition = script.files.iter().find(|file| file.name == "condition").unwrap();
                    let condition = String::from_utf8_lossy(&condition.content).into_owned();
                    assert!(condition.contains(&address(2 - index)), "{condition}");
                    assert_eq!(condition.contains(&address(1)), asks_the_sick, "{condition}");
                }
            }
        }
    }

    #[tokio::test]
    async fn a_member_that_is_not_healthy_has_the_first_turn() {
        let task = planned(true).await;
        let second = testing::sample("three-nodes.yaml").etcd_hosts()[1].name.clone();
        assert_eq!(task.turn, Some(Turn::one_by_one("etcd").order([second])));
        // Each member needs only its own settings, the other binaries, and the download of the binary that is replaced.
        assert!(task.hosts.values().all(|work| work.needs.len() == 3));
    }

    #[tokio::test]
    async fn a_member_that_runs_gets_its_settings_in_its_turn() {
        let facts = Facts::default();
        for runs in [false, true] {
            let task = planned(runs).await;
            for work in task.hosts.values() {
                let changes: Vec<_> = work.actions.iter().map(|action| action.check(&facts)).collect();
                assert_eq!(format!("{changes:?}").contains("write /etc/etcd.env"), runs, "{changes:?}");
            }
        }
    }

    /// A restart in a turn blocks until systemd gives up.
    #[tokio::test]
    async fn kk_waits_longer_for_a_member_than_systemd() {
        let spec = testing::sample("three-nodes.yaml");
        let directory = tempfile::tempdir().unwrap();
        let (probed, session) = (testing::fresh(&spec), testing::session(spec.clone(), directory.path()));
        let inputs = session.create_inputs(&probed).await.unwrap();
        let host = spec.etcd_hosts()[0];
        let facts = &probed.facts[&host.name];
        let Apply::Script(unit) = files(&inputs, host, facts).unwrap()[1].apply(facts) else {
            panic!("no file")
        };
        let unit = String::from_utf8_lossy(&unit.files[0].content).into_owned();
        let limit = unit.lines().find_map(|line| line.strip_prefix("TimeoutStartSec=")).unwrap();
        let (limit, wait) = (Duration::from_secs(limit.parse().unwrap()), Duration::from_mins(2));
        for timeout in [planned(true).await.timeout, planned(false).await.timeout, START_TASK] {
            assert!(timeout > limit + wait, "{timeout:?}");
        }
    }

    #[tokio::test]
    async fn a_new_cluster_starts_when_every_member_has_what_it_needs() {
        let task = planned(false).await;
        assert_eq!(task.turn, None);
        assert!(task.hosts.values().all(|work| work.needs.len() == 6));
    }
}
