//! End the rotation.

use std::sync::Arc;

use async_trait::async_trait;
use kk_connector::quote;
use kk_engine::{
    Action, Apply, CONTROL, Change, Context, Facts, Failure, HostWork, Run, Task, actions::Command,
};

use super::{Authorities, Round, record_round::all_of};
use crate::{
    base::slots,
    model::{actions::RemoveLocal, inputs::Inputs},
};

/// First, the control machine makes the new CA of etcd its current one. Then each host records this CA, and the mark of the
/// rotation is removed from it. Finally, the old CAs are removed from the control machine. If a run is killed in between, the
/// next run resumes there.
pub(super) fn tasks(inputs: &Inputs, authorities: &Arc<Authorities>, round: Round) -> Vec<Task> {
    let mut work =
        HostWork::new(vec![Box::new(TakePlace(authorities.clone()))]).provides(slots::rotation_saved_slot());
    work.needs.extend(all_of(inputs, round));
    let take = Task::new("take_new_ca", "Make the new CA of etcd the current one").on(CONTROL, work);
    let mut end = Task::new("end_rotation", "End the rotation");
    let mut remove = remove(authorities);
    let last = remove.hosts.get_mut(CONTROL).expect("it is for the control machine");
    for (host, _) in inputs.hosts() {
        let text = format!(
            "kk_belong_anew {} {}\nrm -rf /etc/kubekey/rotation\n",
            quote(&inputs.spec.name),
            authorities.etcd.ca_sum()
        );
        let work = HostWork::new(vec![Box::new(Command::new("record the new CA", text))])
            .needs(slots::rotation_saved_slot())
            .provides(slots::rotation_ended_slot(&host.name));
        last.needs.push(slots::rotation_ended_slot(&host.name));
        end = end.on(&host.name, work);
    }
    vec![take, end, remove]
}

/// Removes the old CAs, and the files that only the rotation needed, from the control machine.
pub(super) fn remove(authorities: &Authorities) -> Task {
    let work = HostWork::new(vec![Box::new(RemoveLocal(vec![authorities.directory()]))]);
    Task::new("remove_old_ca", "Remove the old CAs from the control machine").on(CONTROL, work)
}

struct TakePlace(Arc<Authorities>);

impl Action for TakePlace {
    fn check(&self, _facts: &Facts) -> Change {
        if self.0.are_in_use() { Change::None } else { Change::needed("replace the old CA of etcd") }
    }

    fn apply(&self, _facts: &Facts) -> Apply {
        Apply::Run(Arc::new(Self(self.0.clone())))
    }
}

#[async_trait]
impl Run for TakePlace {
    async fn run(&self, _context: Context) -> Result<(), Failure> {
        self.0.take_place().map_err(|error| {
            Failure::new(format!("cannot move the CA of etcd in {}: {error}", self.0.directory().display()))
        })
    }
}
