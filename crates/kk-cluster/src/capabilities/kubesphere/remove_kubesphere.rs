//! Remove KubeSphere.

use std::sync::Arc;

use async_trait::async_trait;
use kk_config::{Host, Role};
use kk_engine::{
    Action, Answer, Apply, Change, Context, Facts, Failure, HostWork, Load, ProbeSpec, Question, Run, Task,
    question,
};

use super::{
    look::look,
    removal::{LONGEST, Removal},
    state::{self, State},
};
use crate::{
    base::{findings::Findings, shell::script, slots},
    model::inputs::Inputs,
};

/// The resources that may remain if the operator cannot remove them.
const LEFT: &str = "its resources outside the hosts may remain (load balancers, volumes of a storage system)";

/// Whether there is a `ClusterConfiguration`. If the API is down, there is no answer.
pub(crate) const IS_THERE: Question<bool> =
    Question::new("kubesphere_is_there", "echo no", question::yes_or_no);

/// Adds the questions of a delete to control planes.
pub(crate) fn asks(host: &Host, probe: &mut ProbeSpec) {
    if host.has_role(&Role::ControlPlane) {
        let text = concat!(include_str!("ask.sh"), include_str!("is_there.sh"));
        probe.ask(&IS_THERE.with_snippet(script(&[("server", &state::server(host))], text)));
    }
}

/// Reports that it is unknown whether KubeSphere is installed, although the file requests it.
pub(crate) fn findings(inputs: &Inputs, found: &mut Findings) {
    let answers: Vec<Answer<bool>> =
        inputs.control_planes().iter().map(|(_, facts)| facts.answer(&IS_THERE)).collect();
    if inputs.spec.kubesphere.is_none() || answers.iter().any(|answer| matches!(answer, Answer::Answered(_)))
    {
        return;
    }
    let Some(why) = answers.iter().find_map(Answer::unanswered) else { return };
    found.warning(
        None,
        format!(
            "KubeSphere is not removed before the hosts, because the API does not report whether it is \
                 installed ({why}): {LEFT}"
        ),
        "to remove it, restore the API first; kk create cluster restores the rights of administrators",
    );
}

/// Removes KubeSphere before everything else, on the first control plane whose API has it. Its data on the hosts is removed with
/// the hosts anyway.
pub(crate) fn task(inputs: &Inputs) -> Option<Task> {
    let has_it = |facts: &Facts| facts.answer(&IS_THERE).answered() == Some(true);
    let (host, _) = inputs.control_planes().into_iter().find(|(_, facts)| has_it(facts))?;
    let text = concat!(include_str!("ask.sh"), include_str!("remove_kubesphere.sh"));
    let remove = Remove { script: script(&[("server", &state::server(host))], text).into() };
    let work = HostWork::new(vec![Box::new(remove)]).provides(slots::kubesphere_removed_slot());
    Some(Task::new("remove_kubesphere", "Remove KubeSphere").timeout(LONGEST * 2).on(&host.name, work))
}

#[derive(Clone)]
struct Remove {
    script: Arc<str>,
}

impl Action for Remove {
    fn check(&self, _facts: &Facts) -> Change {
        Change::needed(
            "delete the ClusterConfiguration and wait until ks-installer has removed all components",
        )
    }

    fn apply(&self, _facts: &Facts) -> Apply {
        Apply::Run(Arc::new(self.clone()))
    }

    fn load(&self) -> Load {
        Load::Wait
    }

    /// The task waits for a deletion that it has requested itself.
    fn is_change(&self) -> bool {
        true
    }
}

#[async_trait]
impl Run for Remove {
    /// Reports components that cannot be removed, without a failure, because the hosts are deleted anyway.
    async fn run(&self, context: Context) -> Result<(), Failure> {
        let mut removal = Removal::default();
        let judge = |state: &State, now| removal.look(state, now);
        let end = match look(&context, self.script.clone(), LONGEST * 2, judge).await {
            Ok((end, _)) => end,
            Err(ended) => Err(format!("the wait ended with code {}", ended?.code)),
        };
        let what = match end {
            Ok(()) => "removed before the hosts".to_owned(),
            Err(why) => {
                (context.note)(format!("KubeSphere is not removed: {why}; the delete continues"));
                format!("not removed before the hosts: {why}. {LEFT}")
            }
        };
        context.slots.output("KubeSphere", what);
        Ok(())
    }
}
