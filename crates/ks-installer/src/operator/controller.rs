//! From what was seen to passes of the engine, and from these to the status.

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

/// Keeps the object until everything that was made is removed.
const FINALIZER: &str = "installer.kubesphere.io/uninstall";
/// What is told within this time is written at once.
const TOGETHER: Duration = Duration::from_millis(150);
/// Time until a request that failed is tried again.
const AGAIN: Duration = Duration::from_secs(1);

/// In how many parts of the time between two looks at everything the same change of the same object is looked at once: somebody
/// may make it again and again.
const PARTS: u32 = 10;

/// What was seen of objects that are not as they were applied, and when they were looked at for it.
type Checked = HashMap<Id, (String, Instant)>;

/// The one that acts.
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
    /// Works until it is dropped.
    pub(super) async fn run(&self) {
        let mut checked = Checked::new();
        let mut resync = interval_at(tokio::time::Instant::now() + self.resync, self.resync);
        // What happened while nobody watched is not known.
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
                            // Whoever would take it has just ended: it is taken from `more` below.
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

    /// Waits until an object of ours is changed by somebody else, or until it is time to look at all of them.
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

    /// Components with objects that are not as they were applied, and were not looked at since.
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

    /// Brings everything to what the object says now. `false`: it could not be asked or written.
    async fn turn(&self, suspects: &Suspects, more: &mut UnboundedReceiver<Suspects>) -> bool {
        // What the turn before has asked for is there.
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
            // Not before: a turn may be dropped.
            self.board.update(|state| state.has_changed = false);
        }
        true
    }

    /// Adds the finalizer and renames old keys, in place.
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

    /// Lets the object go.
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
    /// Writes what is told, until it is dropped.
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

    /// Writes the status, if it is another one.
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
                // Deleted without us; or the operator ends.
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
