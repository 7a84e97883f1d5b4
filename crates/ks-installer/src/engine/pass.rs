//! Runs one pass over all components along the graph of dependencies. Several components run concurrently, and each is retried
//! until it succeeds.
//!
//! A pass ends when there is nothing left to do. If the spec changes, the pass is dropped, and the next one resumes from its
//! results. A change by another client does not restart the pass: only its component is checked again.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::PoisonError;

use futures::StreamExt;
use futures::stream::FuturesUnordered;
use serde_json::Value;
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::sync::{Semaphore, watch};

use super::desired::{Desired, desired};
use super::{Engine, Failure, Reason};
use crate::payload::{Component, extension};

/// Number of components that run concurrently.
const COMPONENTS_AT_ONCE: usize = 4;

/// Components with an object that differs from the applied object.
pub type Suspects = BTreeSet<String>;

/// Current activity of a component.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Other components come first.
    Waiting(String),
    /// The objects are being written.
    Installing,
    /// The component waits for something.
    Progressing(String),
    /// The component is in its wanted state.
    Ready,
    /// The component is being removed.
    Removing,
    /// No object of the component is left.
    Removed,
    /// The component has failed and is retried later.
    Failed(Failure),
}

/// Receives the progress of components.
pub trait Report: Send + Sync {
    /// Reports the current phase of a component.
    fn tell(&self, component: &str, phase: Phase);
}

/// Reports the progress of one component.
pub(super) struct Progress<'a> {
    report: &'a dyn Report,
    component: &'a str,
    states: &'a States,
}

/// State of each component of a pass.
type States = watch::Sender<BTreeMap<String, State>>;

impl Progress<'_> {
    pub(super) fn starts(&self) {
        self.report.tell(self.component, Phase::Installing);
    }

    pub(super) fn waits(&self, why: &str) {
        self.report.tell(self.component, Phase::Progressing(why.to_owned()));
    }

    /// The API server knows the kinds of the component.
    pub(super) fn knows_kinds(&self) {
        self.states.send_if_modified(|states| match states.get_mut(self.component) {
            Some(state @ State::Open) => {
                *state = State::KindsKnown;
                true
            }
            _ => false,
        });
    }

    pub(super) fn removes(&self) {
        self.report.tell(self.component, Phase::Removing);
    }
}

/// State of a component as other components see it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Open,
    /// The kinds of the component are known, or the component has failed. A component that needs only the kinds can start.
    KindsKnown,
    Ready,
    Removed,
    /// No repository publishes the component. Only components that need it wait for it.
    Unpublished,
}

/// Goal of a pass.
#[derive(Clone, Copy, Debug)]
pub enum Goal<'a> {
    /// The components that a spec enables.
    Have(&'a Value),
    /// No components; the spec decides what happens to data.
    Remove(&'a Value),
}

/// State that all components of a pass share.
struct Pass<'a> {
    engine: &'a Engine,
    spec: &'a Value,
    desired: Desired,
    report: &'a dyn Report,
    permits: Semaphore,
    states: States,
}

impl Engine {
    /// Brings the cluster to a goal, and returns when that is done. Until then, more suspects may arrive.
    pub async fn pass(
        &self,
        goal: Goal<'_>,
        suspects: &Suspects,
        more: &mut UnboundedReceiver<Suspects>,
        report: &dyn Report,
    ) {
        let payload = &self.renderer.payload;
        let (spec, desired) = match goal {
            Goal::Have(spec) => (spec, desired(payload, spec, &self.renderer.kubernetes)),
            Goal::Remove(spec) => (spec, Desired::default()),
        };
        extension::host_of(spec)
            .clone_into(&mut self.own_cluster.lock().unwrap_or_else(PoisonError::into_inner));
        let mut names: BTreeSet<String> = self.inventories.names().into_iter().collect();
        names.extend(desired.wanted.iter().cloned());
        let states = names.iter().map(|name| (name.clone(), State::Open)).collect();
        let pass = Pass {
            engine: self,
            spec,
            desired,
            report,
            permits: Semaphore::new(COMPONENTS_AT_ONCE),
            states: watch::Sender::new(states),
        };
        let mut busy = names.clone();
        let mut running: FuturesUnordered<_> =
            names.iter().map(|name| pass.component(name, suspects.contains(name))).collect();
        let mut again = Suspects::new();
        loop {
            tokio::select! {
                ended = running.next() => {
                    let Some(name) = ended else { return };
                    if again.remove(name) {
                        running.push(pass.component(name, true));
                    } else {
                        busy.remove(name);
                    }
                }
                Some(more) = more.recv() => {
                    for name in names.iter().filter(|name| more.contains(*name)) {
                        if busy.insert(name.clone()) {
                            running.push(pass.component(name, true));
                        } else {
                            again.insert(name.clone());
                        }
                    }
                }
            }
        }
    }
}

impl Pass<'_> {
    /// Brings a component to the goal, with any number of retries, and returns its name.
    async fn component<'n>(&self, name: &'n str, is_suspect: bool) -> &'n str {
        let wanted = self.desired.wanted.contains(name);
        if let Some(failure) = self.desired.refused.get(name) {
            // Only another spec helps, so the existing objects stay.
            self.report.tell(name, Phase::Failed(failure.clone()));
            return name;
        }
        loop {
            if let Some(next) = self.engine.backoff.next(name) {
                tokio::time::sleep_until(next.into()).await;
            }
            self.turn(name, wanted).await;
            match self.attempt(name, wanted, is_suspect).await {
                Ok(()) => break,
                Err(failure) => {
                    self.see_failure(name, failure.reason == Reason::NotPublished);
                    let text = failure.message.clone();
                    self.report.tell(name, Phase::Failed(failure));
                    self.engine.backoff.failed(name, &text);
                }
            }
        }
        self.engine.backoff.succeeded(name);
        let (phase, state) =
            if wanted { (Phase::Ready, State::Ready) } else { (Phase::Removed, State::Removed) };
        self.report.tell(name, phase);
        self.states.send_modify(|states| {
            states.insert(name.to_owned(), state);
        });
        name
    }

    /// Notifies waiting components of a failure: either no repository publishes the component, or it failed for another reason.
    fn see_failure(&self, name: &str, is_missing: bool) {
        let state = if is_missing { State::Unpublished } else { State::KindsKnown };
        self.states.send_if_modified(|states| match states.get_mut(name) {
            // A component that was ready in this pass does not block the others.
            Some(known @ (State::Open | State::KindsKnown | State::Unpublished)) => {
                std::mem::replace(known, state) != state
            }
            _ => false,
        });
    }

    async fn attempt(&self, name: &str, wanted: bool, is_suspect: bool) -> Result<(), Failure> {
        let Ok(_permit) = self.permits.acquire().await else { return Ok(()) };
        let progress = Progress { report: self.report, component: name, states: &self.states };
        let definition = self.engine.renderer.payload.components().get(name);
        match definition {
            Some(component) if wanted => {
                self.engine.converge(component, self.spec, is_suspect, &progress).await
            }
            _ => self.engine.remove(name, definition, self.spec, &progress).await,
        }
    }

    /// Waits for the components that come before this one: required components must be ready, and components that require this
    /// one must be removed.
    async fn turn(&self, name: &str, wanted: bool) {
        let components = self.engine.renderer.payload.components();
        let (is_wanted, is_refused) = (
            |other: &String| self.desired.wanted.contains(other),
            |other: &String| self.desired.refused.contains_key(other),
        );
        let is_needed = |other: &String| {
            !wanted || components.get(name).is_some_and(|component| component.depends_on.contains(other))
        };
        let needs_kinds_only = |other: &String| {
            components.get(name).is_some_and(|component| {
                let more = [&component.depends_on, &component.after];
                component.kinds_of.contains(other) && !more.iter().any(|names| names.contains(other))
            })
        };
        let before: Vec<&String> = if wanted {
            let component = components.get(name);
            let needed = component.into_iter().flat_map(|component| &component.depends_on);
            let first = component.into_iter().flat_map(|component| &component.after);
            let kinds = component.into_iter().flat_map(|component| &component.kinds_of);
            let first = first.chain(kinds).filter(|other| is_wanted(other) && !is_refused(other));
            needed.chain(first).collect()
        } else {
            let is_user = |user: &String, component: &Component| {
                component.depends_on.iter().any(|on| on == name)
                    || component.after.iter().any(|on| on == name) && !is_wanted(user)
            };
            components
                .iter()
                .filter(|(user, component)| is_user(user, component))
                .map(|(user, _)| user)
                .collect()
        };
        let expected = if wanted { State::Ready } else { State::Removed };
        let mut states = self.states.subscribe();
        loop {
            let waiting_for = {
                let states = states.borrow_and_update();
                // A dependent component that is neither installed nor wanted is not in the pass.
                let is_awaited = |other: &&&String| {
                    states.get(**other).is_some_and(|state| match state {
                        State::Unpublished => is_needed(other),
                        State::KindsKnown if wanted => !needs_kinds_only(other),
                        state => *state != expected,
                    })
                };
                before.iter().find(is_awaited).copied()
            };
            let Some(other) = waiting_for else { return };
            let phase = if wanted {
                Phase::Waiting(format!("{other} comes first"))
            } else if self.desired.wanted.contains(other) {
                let message = format!("{name} is switched off and stays, because {other} needs it");
                Phase::Failed(Failure::new(Reason::StillNeeded, message))
            } else {
                Phase::Waiting(format!("{other} is removed first"))
            };
            self.report.tell(name, phase);
            if states.changed().await.is_err() {
                return;
            }
        }
    }
}
