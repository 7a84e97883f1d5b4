//! One pass over all components: along the graph of dependencies, some at once, each tried until it succeeds.
//!
//! A pass ends when nothing is left to do. It is dropped when the spec changes: the next one finds what this one did. What somebody
//! else changes meanwhile is no reason to start again: only its component is looked at again.

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

/// Components that are worked on at once.
const COMPONENTS_AT_ONCE: usize = 4;

/// Components of which an object was seen that is not as it was applied.
pub type Suspects = BTreeSet<String>;

/// What a component does now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Others come first.
    Waiting(String),
    /// Its objects are written.
    Installing,
    /// Something is waited for.
    Progressing(String),
    /// Everything is as it should be.
    Ready,
    /// It is removed.
    Removing,
    /// Nothing is left of it.
    Removed,
    /// It is tried again later.
    Failed(Failure),
}

/// Who is told.
pub trait Report: Send + Sync {
    /// A component does this now.
    fn tell(&self, component: &str, phase: Phase);
}

/// The way of one component to whoever is told.
pub(super) struct Progress<'a> {
    report: &'a dyn Report,
    component: &'a str,
    states: &'a States,
}

/// What each component of a pass has reached.
type States = watch::Sender<BTreeMap<String, State>>;

impl Progress<'_> {
    pub(super) fn starts(&self) {
        self.report.tell(self.component, Phase::Installing);
    }

    pub(super) fn waits(&self, why: &str) {
        self.report.tell(self.component, Phase::Progressing(why.to_owned()));
    }

    /// The kinds that the component brings are known to the API server.
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

/// What those that depend on each other see of a component.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Open,
    /// Its kinds are known, or it has failed: a component that needs only the kinds can start.
    KindsKnown,
    Ready,
    Removed,
    /// No repository has it: only who needs it waits for it.
    Unpublished,
}

/// What a pass works for.
#[derive(Clone, Copy, Debug)]
pub enum Goal<'a> {
    /// What a spec asks for.
    Have(&'a Value),
    /// Nothing at all; the spec says what happens to data.
    Remove(&'a Value),
}

/// What all components of a pass share.
struct Pass<'a> {
    engine: &'a Engine,
    spec: &'a Value,
    desired: Desired,
    report: &'a dyn Report,
    permits: Semaphore,
    states: States,
}

impl Engine {
    /// Brings the cluster to a goal. Ends when that is done. More suspects may come until then.
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
    /// Brings a component to the goal, however often it fails; gives its name.
    async fn component<'n>(&self, name: &'n str, is_suspect: bool) -> &'n str {
        let wanted = self.desired.wanted.contains(name);
        if let Some(failure) = self.desired.refused.get(name) {
            // Only another spec helps; what is there stays.
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

    /// Lets those that wait for a component see that no repository has it, or that this is not why it failed.
    fn see_failure(&self, name: &str, is_missing: bool) {
        let state = if is_missing { State::Unpublished } else { State::KindsKnown };
        self.states.send_if_modified(|states| match states.get_mut(name) {
            // One that was ready in this pass stopped nobody.
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

    /// Waits until those that come before a component are done: what it needs is ready, or what needs it is gone.
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
                // A user that neither is there nor shall be is not in the pass.
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
