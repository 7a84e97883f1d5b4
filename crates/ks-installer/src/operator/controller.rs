//! Runs passes of the engine for observed changes, and writes their results to the status.

use std::collections::HashMap;
use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tokio::sync::mpsc::{self, UnboundedReceiver};
use tokio::time::{Interval, interval_at, sleep};

use super::announce::Announcer;
use super::board::Board;
use super::hooks::Wake;
use super::written::{self, Written};
use super::{events, status};
use crate::api::{Api, ApiError, Id};
use crate::engine::{Engine, Goal, Suspects};
use crate::spec;

/// Finalizer that keeps the object until all created objects are removed.
const FINALIZER: &str = "installer.kubesphere.io/uninstall";
/// Phases within this time are written together.
const TOGETHER: Duration = Duration::from_millis(150);
/// Time until a failed request is retried.
const AGAIN: Duration = Duration::from_secs(1);

/// Divisor of the resync interval. During the resulting time, an equal change of the same object is checked only once, because
/// another client may repeat it forever.
const PARTS: u32 = 10;

/// The digests of objects that differ from the applied state, and when they were last checked.
type Checked = HashMap<Id, (String, Instant)>;

/// The controller of the active replica.
pub(super) struct Controller {
    pub(super) api: Arc<Api>,
    pub(super) engine: Engine,
    pub(super) wake: Arc<Wake>,
    pub(super) id: Id,
    pub(super) board: Arc<Board>,
    pub(super) announcer: Announcer,
    pub(super) resync: Duration,
    pub(super) revision: Option<String>,
    pub(super) written: Written,
}

impl Controller {
    /// Runs until it is dropped.
    pub(super) async fn run(&self) {
        let mut checked = Checked::new();
        let mut resync = interval_at(tokio::time::Instant::now() + self.resync, self.resync);
        // Changes while no replica was active are unknown.
        let mut suspects: Suspects = self.engine.inventories().names().into_iter().collect();
        loop {
            let (news, mut more) = mpsc::unbounded_channel();
            let mut told = Suspects::new();
            let done = {
                let mut turn = pin!(self.turn(&suspects, &mut more));
                loop {
                    tokio::select! {
                        done = &mut turn => break Some(done),
                        () = self.wake.changed.notified() => break None,
                        found = self.next_suspects(&mut checked, &mut resync) => {
                            told.extend(found.iter().cloned());
                            // If the receiver has just ended, the suspects are read from `more` below.
                            let _ = news.send(found);
                        }
                    }
                }
            };
            match done {
                Some(true) => {
                    suspects.clear();
                    while let Ok(late) = more.try_recv() {
                        suspects.extend(late);
                    }
                    if suspects.is_empty() {
                        tokio::select! {
                            () = self.wake.changed.notified() => {}
                            found = self.next_suspects(&mut checked, &mut resync) => suspects = found,
                        }
                    }
                }
                other => {
                    suspects.extend(told);
                    if other.is_some() {
                        sleep(AGAIN).await;
                    }
                }
            }
        }
    }

    /// Waits until another client changes an object of ks-installer, or until all objects have to be checked.
    async fn next_suspects(&self, checked: &mut Checked, resync: &mut Interval) -> Suspects {
        loop {
            let found = self.suspects(checked);
            if !found.is_empty() {
                return found;
            }
            tokio::select! {
                () = self.wake.moved.notified() => {}
                () = sleep(self.resync / PARTS) => {}
                _ = resync.tick() => return self.engine.inventories().names().into_iter().collect(),
            }
        }
    }

    /// Components with objects that differ from the applied state and were not checked since.
    fn suspects(&self, checked: &mut Checked) -> Suspects {
        let mut suspects = Suspects::new();
        for seen in self.wake.seen() {
            let known = checked.get(&seen.id);
            let is_new =
                known.is_none_or(|(live, when)| *live != seen.live || when.elapsed() >= self.resync / PARTS);
            if is_new && self.engine.inventories().is_suspect(&seen.component, &seen.id, &seen.live) {
                checked.insert(seen.id, (seen.live, Instant::now()));
                suspects.insert(seen.component);
            }
        }
        suspects
    }

    /// Brings the cluster to the state that the object specifies. Returns `false` if a request for the object failed.
    async fn turn(&self, suspects: &Suspects, more: &mut UnboundedReceiver<Suspects>) -> bool {
        // The requests of the previous turn are completed.
        drop(self.written.current().await);
        let object = match self.api.get(&self.id).await {
            Ok(Some(object)) => object,
            Ok(None) => return true,
            Err(error) => return self.failed("cannot read", &error),
        };
        let object = match self.prepare(object).await {
            Ok(object) => object,
            Err(error) => return self.failed("cannot change", &error),
        };
        let is_deleted = !object["metadata"]["deletionTimestamp"].is_null();
        let generation = object["metadata"]["generation"].as_i64().unwrap_or(0);
        let known = self.engine.renderer().payload.known_paths();
        let problems =
            if is_deleted { spec::Problems::default() } else { spec::check(&object["spec"], &known) };
        let is_wrong = !problems.wrong.is_empty();
        let is_new = self.board.state().generation != generation;
        if is_new {
            self.engine.forget_failures();
        }
        self.board.update(|state| {
            if is_new {
                state.components.clear();
                state.done = false;
            }
            (state.generation, state.problems, state.plan) = (generation, problems, None);
            state.removing = is_deleted;
        });
        let spec = spec::effective(&object["spec"], &object["status"]);
        if let Err(error) = self.engine.count_nodes().await {
            return self.failed("cannot count the nodes for", &error);
        }
        let was_ready =
            object["status"]["phase"] == "Ready" && object["status"]["observedGeneration"] == generation;
        let writer = Writer { controller: self, uid: &object["metadata"]["uid"] };
        object["status"].clone_into(&mut *self.written.current().await);
        if is_wrong {
            self.announcer.incomplete();
        } else if spec["mode"] == "Plan" && !is_deleted {
            let plan = self.engine.plan(&spec).await;
            let lines =
                plan.iter().flat_map(|(name, changes)| changes.iter().map(move |c| format!("{name}: {c}")));
            let lines: Vec<String> = lines.collect();
            self.board.update(|state| state.plan = Some(lines));
        } else {
            let goal = if is_deleted { Goal::Remove(&spec) } else { Goal::Have(&spec) };
            tokio::select! {
                () = self.engine.pass(goal, suspects, more, &*self.board) => {}
                () = writer.keep_writing() => {}
            }
            self.board.update(|state| state.done = true);
        }
        if let Err(error) = writer.write().await {
            return self.failed("cannot write the status of", &error);
        }
        if is_deleted {
            return match self.release(&object).await {
                Ok(()) => true,
                Err(error) => self.failed("cannot release", &error),
            };
        }
        let state = self.board.state();
        if state.is_complete() {
            self.announcer.complete(&self.api, !was_ready, state.has_changed).await;
            // Earlier would be wrong, because a turn may be dropped.
            self.board.update(|state| state.has_changed = false);
        }
        true
    }

    /// Adds the finalizer and renames old keys in the object itself.
    async fn prepare(&self, object: Value) -> Result<Value, ApiError> {
        if !object["metadata"]["deletionTimestamp"].is_null() {
            return Ok(object);
        }
        let mut spec = object["spec"].clone();
        let renamed = spec::migrate(&mut spec);
        let finalizers = finalizers(&object);
        let has_finalizer = finalizers.iter().any(|name| name == FINALIZER);
        let mut change = json!({ "metadata": { "resourceVersion": object["metadata"]["resourceVersion"] } });
        if !has_finalizer {
            let all: Vec<&str> = finalizers.iter().map(String::as_str).chain([FINALIZER]).collect();
            change["metadata"]["finalizers"] = json!(all);
        }
        if let Some(patch) = status::merge_patch(&object["spec"], &spec) {
            for what in renamed {
                (self.announcer.print)(&format!("migrated: {what}"));
            }
            change["spec"] = patch;
        } else if has_finalizer {
            return Ok(object);
        }
        self.api.merge(&self.id, "", &change).await
    }

    /// Removes the finalizer from the object.
    async fn release(&self, object: &Value) -> Result<(), ApiError> {
        let left: Vec<String> = finalizers(object).into_iter().filter(|name| name != FINALIZER).collect();
        match self.api.merge(&self.id, "", &json!({ "metadata": { "finalizers": left } })).await {
            Err(ApiError::Refused { code: 404, .. }) => Ok(()),
            other => other.map(drop),
        }
    }

    fn failed(&self, what: &str, error: &ApiError) -> bool {
        (self.announcer.print)(&format!("{what} {}: {error}; trying again", self.id));
        false
    }
}

/// Writes the status of one turn.
struct Writer<'a> {
    controller: &'a Controller,
    uid: &'a Value,
}

impl Writer<'_> {
    /// Writes the status after each change until it is dropped.
    async fn keep_writing(&self) {
        loop {
            self.controller.board.told.notified().await;
            sleep(TOGETHER).await;
            if !self.controller.board.state().is_at_work() {
                continue;
            }
            if let Err(error) = self.write().await {
                self.controller.failed("cannot write the status of", &error);
                sleep(AGAIN).await;
                self.controller.board.told.notify_one();
            }
        }
    }

    /// Writes the status if it has changed.
    async fn write(&self) -> Result<(), ApiError> {
        let Controller { api, board, engine, id, announcer, revision, written, .. } = self.controller;
        let state = board.state();
        let current = written.current().await;
        let wanted = status::status(&current, &state, &engine.renderer().payload, revision.as_deref());
        if wanted["phase"] != "Ready" && wanted["phase"] != current["phase"] {
            announcer.incomplete();
        }
        if let Some(patch) = status::merge_patch(&current, &wanted) {
            let (api, id) = (api.clone(), id.clone());
            let change = json!({ "status": patch });
            let request = async move { api.merge(&id, "status", &change).await };
            match written::write(current, wanted, request).await {
                // Another client has deleted the object, or the operator is stopping.
                Some(Err(ApiError::Refused { code: 404, .. })) | None => {}
                Some(written) => drop(written?),
            }
        }
        events::write(api, id, self.uid, board.take_events()).await;
        Ok(())
    }
}

fn finalizers(object: &Value) -> Vec<String> {
    let finalizers = object["metadata"]["finalizers"].as_array();
    finalizers.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
}
