//! Start containerd, and wait until it answers.

use kk_artifact::Component;
use kk_config::Role;
use kk_engine::{
    Action, HostWork, Task,
    actions::{Command, Unit, WaitUntil, any_needed},
};

use super::{files::files, is_active};
use crate::{
    base::{
        error::BuildError,
        rollout::{Candidate, Rollout},
        slots,
    },
    capabilities::programs,
    model::inputs::Inputs,
};

/// Restarts containerd only if a file that it reads at its start changes in this run, or is newer than the process because an
/// earlier run was killed. Pods keep running meanwhile. Settings with which it does not start reach only one host. The next
/// container uses runc and the CNI plugins, so they are replaced in the turn, too.
pub(super) fn task(inputs: &Inputs) -> Result<Task, BuildError> {
    let mut hosts = inputs.nodes();
    hosts.sort_by_key(|(host, facts)| (is_active(facts), host.has_role(&Role::ControlPlane)));
    let mut candidates = Vec::new();
    for (host, facts) in &hosts {
        let changes = any_needed(&files(inputs, facts)?, facts)
            || inputs.runtime.components.iter().any(|component| programs::changes(inputs, host, *component));
        candidates.push(Candidate { host, runs: is_active(facts), changes });
    }
    let rollout = Rollout::new("containerd", &candidates);
    let mut task = Task::new("start_containerd", "Start containerd");
    for (Candidate { host, runs, changes }, (_, facts)) in candidates.into_iter().zip(&hosts) {
        // The binary first, because the upload may take minutes: the current binary cannot start with other settings.
        let mut actions: Vec<Box<dyn Action>> = Vec::new();
        let replaced = |component: &Component| {
            let fetched = programs::replace_in_turn(inputs, host, *component, &mut actions)?;
            Some((*component, fetched))
        };
        let (replaced, fetched): (Vec<_>, Vec<_>) =
            inputs.runtime.components.iter().filter_map(replaced).unzip();
        if !fetched.is_empty() {
            task = task.timeout(programs::UPLOAD_TIMEOUT);
        }
        if replaced.contains(&Component::Runc) {
            let starts = Command::new("check that runc starts", "kk_do runc --version >/dev/null\n")
                .hint("", "it does not run on this host: set another version in spec.components.runc");
            actions.push(Box::new(starts));
        }
        let is_restarted = any_needed(&files(inputs, facts)?, facts)
            || programs::changes(inputs, host, Component::Containerd);
        if runs {
            actions.extend(files(inputs, facts)?);
        }
        let unit = Unit::running("containerd.service").force_restart(is_restarted).restart_after([
            "/etc/containerd/config.toml",
            "/etc/systemd/system/containerd.service",
            "/usr/local/bin/containerd",
        ]);
        let restarts = runs && unit.check(facts).is_needed();
        // containerd also runs if its CRI plugin did not load. After its first start, the first pull detects that.
        let answers = WaitUntil::new("containerd answers", "crictl --timeout 5s version >/dev/null")
            .done_by(move |_| !restarts)
            .hint("", "see \"journalctl -u containerd\" on the host; nodes after this one were not changed");
        actions.push(Box::new(unit));
        actions.push(Box::new(answers));
        let mut work = HostWork::new(actions)
            .needs(slots::runtime_programs_slot(&host.name))
            .provides(slots::runtime_slot(&host.name));
        work.needs.extend(fetched);
        if changes {
            work = rollout.after_first(host, work);
        }
        task = task.on(&host.name, rollout.shows_first(host, work));
    }
    Ok(rollout.in_turns(task))
}

#[cfg(test)]
mod tests {
    use kk_engine::UnitFact;

    use super::*;
    use crate::testing;

    const CONFIGURATION: &str = "write /etc/containerd/config.toml";

    fn writes(task: &Task, host: &str, facts: &kk_engine::Facts) -> bool {
        task.hosts[host].actions.iter().any(|action| match action.check(facts) {
            kk_engine::Change::Needed(lines) => lines.iter().any(|line| line == CONFIGURATION),
            kk_engine::Change::None => false,
        })
    }

    #[tokio::test]
    async fn a_containerd_that_runs_gets_its_settings_when_another_has_shown_that_they_work() {
        let spec = testing::sample("three-nodes.yaml");
        for runs in [false, true] {
            let (mut probed, directory) = (testing::fresh(&spec), tempfile::tempdir().unwrap());
            for facts in probed.facts.values_mut() {
                let unit = UnitFact { active: runs, ..UnitFact::default() };
                facts.units.insert("containerd.service".into(), unit);
            }
            let session = testing::session(spec.clone(), directory.path());
            let inputs = session.create_inputs(&probed).await.unwrap();
            let (configure, start) =
                (super::super::configure_containerd::task(&inputs).unwrap(), task(&inputs).unwrap());
            assert_eq!(start.turn.is_some(), runs);
            let shown = slots::works_on_first_slot("containerd");
            let waits = start.hosts.values().filter(|work| work.needs.contains(&shown)).count();
            assert_eq!(waits, if runs { start.hosts.len() - 1 } else { 0 });
            for (host, facts) in &probed.facts {
                assert_eq!(writes(&start, host, facts), runs, "{host}");
                assert_eq!(writes(&configure, host, facts), !runs, "{host}");
            }
        }
    }
}
