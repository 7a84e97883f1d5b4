//! Walks through the works of one lane in order: waits, executes, retries, or gives up.

use std::{panic::AssertUnwindSafe, sync::Arc};

use futures::FutureExt;

use super::{
    execute::{self, Ended},
    select::{Position, Selected, select_next},
    shared::Shared,
};
use crate::{Failure, Retry, plan::Work};

/// One lane, or a single background work.
pub(super) struct Lane {
    shared: Arc<Shared>,
    works: Vec<usize>,
    position: Position,
    /// The attempt of the work at `position`.
    attempt: u32,
}

/// Why a lane ends early.
enum Stop {
    /// Nothing new may begin.
    Halted(String),
    /// The operation at the lane's position failed permanently.
    Failed(Failure),
}

impl Lane {
    pub(super) fn new(shared: Arc<Shared>, works: Vec<usize>) -> Self {
        Self { shared, works, position: Position { work: 0, operation: 0 }, attempt: 1 }
    }

    /// Walks to the end. In any case, each slot of the lane's works is filled or failed afterwards.
    pub(super) async fn walk(mut self) {
        while self.position.work < self.works.len() {
            match self.step().await {
                Ok(()) => {}
                Err(Stop::Halted(reason)) => {
                    return self.shared.give_up(&self.works[self.position.work..], &reason);
                }
                Err(Stop::Failed(failure)) => return self.fail(&failure),
            }
        }
    }

    /// The work at the lane's position.
    fn work(&self) -> &Work {
        &self.shared.plan.works[self.works[self.position.work]]
    }

    /// Waits until the lane may continue, then selects and executes the next work.
    async fn step(&mut self) -> Result<(), Stop> {
        let shared = self.shared.clone();
        let work = &shared.plan.works[self.works[self.position.work]];
        shared.ready(work).await.map_err(Stop::Halted)?;
        shared.turn(self.works[self.position.work]).await.map_err(Stop::Halted)?;
        // The code of actions is not trusted: a panic is a failure of its task, and other lanes must not wait forever.
        let selected = AssertUnwindSafe(async { select_next(&shared, &self.works, self.position) });
        let selected = selected.catch_unwind().await.unwrap_or_else(|panic| Err(bug(&*panic)));
        let selected = match selected {
            Ok(selected) => selected,
            Err(failure) => {
                shared.tracker.started(&shared.plan, self.works[self.position.work], self.attempt);
                return Err(Stop::Failed(failure));
            }
        };
        let transfers = matches!(&selected, Selected::Code(code) if code.transfers());
        let load = work.operations[self.position.operation].action.load();
        let permit = shared.permit(work, load, transfers).await.map_err(Stop::Halted)?;
        let ended = execute::execute(&shared, &self.works, self.position, self.attempt, selected, permit);
        let ended = AssertUnwindSafe(ended).catch_unwind().await;
        match ended.unwrap_or_else(|panic| Ended::Failed(self.position, bug(&*panic))) {
            Ended::At(position) => {
                self.go_to(position);
                Ok(())
            }
            Ended::Failed(position, failure) => {
                self.go_to(position);
                self.try_again(failure).await
            }
        }
    }

    fn go_to(&mut self, position: Position) {
        if position.work != self.position.work {
            self.attempt = 1;
        }
        self.position = position;
    }

    /// Waits before the next attempt, if there is one.
    async fn try_again(&mut self, failure: Failure) -> Result<(), Stop> {
        let mut retry = self.shared.plan.steps[self.work().step].retry;
        if failure.connection && retry.attempts < Retry::CONNECTION.attempts {
            retry = Retry::CONNECTION;
        }
        let stopped = self.shared.options.cancel.is_cancelled();
        if stopped || !failure.transient || self.attempt >= retry.attempts {
            return Err(Stop::Failed(failure));
        }
        let wait = retry.pause(self.attempt);
        let index = self.works[self.position.work];
        self.shared.tracker.retrying(&self.shared.plan, index, failure.clone(), wait);
        let waited = self.shared.unless_halted(&self.work().host, tokio::time::sleep(wait)).await;
        self.attempt += 1;
        waited.map_err(|_| Stop::Failed(failure))
    }

    /// Ends the lane after a failure, and the waits for the slots that it would have provided.
    fn fail(&self, failure: &Failure) {
        let index = self.works[self.position.work];
        let work = self.work();
        self.shared.failed(index, failure);
        let reason = format!("\"{}\" failed on {}", self.shared.plan.steps[work.step].title, work.subject());
        self.shared.fail_slots(work, &reason);
        self.shared.give_up(&self.works[self.position.work + 1..], &reason);
    }
}

/// A panic in the code of an action.
fn bug(panic: &(dyn std::any::Any + Send)) -> Failure {
    let text = panic.downcast_ref::<&str>().copied().map(str::to_owned);
    let text = text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_default();
    Failure::new(format!("a bug in kk: {text}")).hint("please report it, with the log of this run")
}
