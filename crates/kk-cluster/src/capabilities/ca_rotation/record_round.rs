//! Record that a round of the rotation has ended.

use kk_engine::{HostWork, SlotKey, Task, actions::Command};

use super::{Round, is_worker, text};
use crate::{base::slots, model::inputs::Inputs};

/// Records the round on every host, after it has ended on all hosts.
pub(super) fn task(inputs: &Inputs, round: Round) -> Task {
    let mut task = Task::new("record_round", "Record that the round has ended");
    let needs = all_of(inputs, round);
    for (host, _) in inputs.hosts() {
        let record = Command::new(
            format!("record that round {} of 3 has ended", round.number()),
            text(round, &[], &[include_str!("record_round.sh")]),
        );
        let mut work = HostWork::new(vec![Box::new(record)]);
        work.needs.extend(needs.iter().cloned());
        task = task.on(&host.name, work);
    }
    task
}

/// The slots that are provided when a round has ended on all hosts.
pub(super) fn all_of(inputs: &Inputs, round: Round) -> Vec<SlotKey> {
    let control_planes = inputs.control_planes().into_iter();
    let workers = inputs.nodes().into_iter().filter(|(host, _)| is_worker(host));
    let mut needs: Vec<SlotKey> =
        control_planes.map(|(host, _)| slots::settings_applied_slot(&host.name)).collect();
    needs.extend(workers.map(|(host, _)| slots::kubelet_works_slot(&host.name)));
    let members = inputs.etcd_hosts().into_iter();
    needs.extend(members.map(|(host, _)| slots::etcd_healthy_slot(&host.name)));
    if round != Round::Issue {
        needs.push(slots::ca_published_slot());
    }
    if round == Round::TrustBoth {
        needs.push(slots::workloads_restarted_slot());
    }
    needs
}
