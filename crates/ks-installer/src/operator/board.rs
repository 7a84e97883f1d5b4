//! Collects the phase of each component, and prints the lines that users follow in the log.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use tokio::sync::Notify;

use super::Print;
use crate::engine::{Failure, Phase, Report};
use crate::spec::Problems;

/// State of a pass.
#[derive(Clone, Debug, Default)]
pub(super) struct State {
    /// Phase of each component, and the time of its last change.
    pub(super) components: BTreeMap<String, (Phase, String)>,
    /// Problems in the spec.
    pub(super) problems: Problems,
    /// Lines of a plan.
    pub(super) plan: Option<Vec<String>>,
    /// Whether the pass has ended.
    pub(super) done: bool,
    /// Whether all components are being removed.
    pub(super) removing: bool,
    /// Whether a component has changed since the complete installation was announced.
    pub(super) has_changed: bool,
    /// Generation of the spec of this pass.
    pub(super) generation: i64,
}

impl State {
    /// Whether all wanted components are ready and all others are removed.
    pub(super) fn is_complete(&self) -> bool {
        self.done
            && self.plan.is_none()
            && self.problems.wrong.is_empty()
            && self.components.values().all(|(phase, _)| matches!(phase, Phase::Ready | Phase::Removed))
    }

    /// Whether a component is not ready (yet). Without any reported component, there is nothing to write.
    pub(super) fn is_at_work(&self) -> bool {
        self.components.values().any(|(phase, _)| *phase != Phase::Ready)
    }

    fn ended(&self) -> usize {
        self.components.values().filter(|(phase, _)| matches!(phase, Phase::Ready | Phase::Removed)).count()
    }
}

/// The state, for the writers of status, Events and log.
pub(super) struct Board {
    state: Mutex<State>,
    /// Notified after each change.
    pub(super) told: Notify,
    /// Phases to write as Events.
    events: Mutex<Vec<(String, Phase)>>,
    /// The last failure of each component, so that it is printed only once and not after each attempt.
    failures: Mutex<BTreeMap<String, Failure>>,
    print: Print,
}

impl Board {
    pub(super) fn new(print: Print) -> Self {
        Self {
            state: Mutex::default(),
            told: Notify::new(),
            events: Mutex::default(),
            failures: Mutex::default(),
            print,
        }
    }

    /// The current state.
    pub(super) fn state(&self) -> State {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Changes fields that do not belong to a single component.
    pub(super) fn update(&self, change: impl FnOnce(&mut State)) {
        change(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner));
        self.told.notify_one();
    }

    /// The phases since the last call.
    pub(super) fn take_events(&self) -> Vec<(String, Phase)> {
        std::mem::take(&mut *self.events.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Board {
    /// Whether a failure or the attempt after it is already known.
    fn is_known(&self, component: &str, phase: &Phase) -> bool {
        let mut failures = self.failures.lock().unwrap_or_else(PoisonError::into_inner);
        match phase {
            Phase::Failed(failure) => {
                failures.insert(component.to_owned(), failure.clone()).as_ref() == Some(failure)
            }
            Phase::Ready | Phase::Removed => failures.remove(component).is_some(),
            _ => failures.contains_key(component),
        }
    }
}

impl Report for Board {
    fn tell(&self, component: &str, phase: Phase) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let before = state.components.get(component).map(|(phase, _)| phase.clone());
        if before.as_ref() == Some(&phase) {
            return;
        }
        // A component that was ready from the beginning did no work.
        let worked = before.is_some_and(|before| before != Phase::Ready);
        state.has_changed |= phase != Phase::Ready;
        state.components.insert(component.to_owned(), (phase.clone(), now()));
        let (ended, total) = (state.ended(), state.components.len());
        drop(state);
        let is_known = self.is_known(component, &phase);
        let line = match &phase {
            Phase::Installing | Phase::Removing | Phase::Failed(_) if is_known => None,
            Phase::Installing => Some(format!("Start installing {component}")),
            Phase::Removing => Some(format!("Start removing {component}")),
            Phase::Ready if worked => {
                Some(format!("task {component} status is successful ({ended}/{total})"))
            }
            Phase::Removed => Some(format!("task {component} status is removed ({ended}/{total})")),
            Phase::Failed(failure) => {
                let reason = failure.reason.as_str();
                Some(format!("task {component} status is failed ({ended}/{total}): {reason}: {failure}"))
            }
            _ => None,
        };
        if let Some(line) = line {
            (self.print)(&line);
            if matches!(phase, Phase::Ready | Phase::Removed | Phase::Failed(_)) {
                let mut events = self.events.lock().unwrap_or_else(PoisonError::into_inner);
                events.push((component.to_owned(), phase));
            }
        }
        self.told.notify_one();
    }
}

/// The current time in the format of the API.
pub(super) fn now() -> String {
    let format = time::macros::format_description!("[year]-[month]-[day]T[hour]:[minute]:[second]Z");
    time::OffsetDateTime::now_utc().format(&format).unwrap_or_default()
}
