//! Waits for changes that the cluster makes by itself. It polls with growing pauses and with a limit.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::pass::Progress;
use super::remove::kind_of;
use super::{Engine, Failure, Reason, uninstall};
use crate::api::{self, Id, Readiness, install_plan, readiness};
use crate::payload::Component;
use crate::render::{Class, class_of, class_of_kind};

/// Pauses between polls.
const FIRST: Duration = Duration::from_millis(100);
const LONGEST: Duration = Duration::from_secs(2);
/// Time limit until the kinds of definitions are known.
const ESTABLISHED: Duration = Duration::from_secs(30);

/// A component that is stuck for this time has failed. A registry that is unavailable for a moment is not a failure.
pub(super) const STUCK: Duration = Duration::from_secs(30);

/// A pause that grows.
pub(super) struct Pause(Duration);

impl Pause {
    pub(super) fn begin() -> Self {
        Self(FIRST)
    }

    fn is_longest(&self) -> bool {
        self.0 == LONGEST
    }

    pub(super) async fn sleep(&mut self) {
        tokio::time::sleep(self.0).await;
        self.0 = (self.0 * 3 / 2).min(LONGEST);
    }
}

impl Engine {
    /// Waits until the API server knows the kinds of new definitions.
    pub(super) async fn wait_established(&self, objects: &[Value]) -> Result<(), Failure> {
        let until = Instant::now() + ESTABLISHED;
        for id in objects.iter().filter(|object| class_of(object) == Class::Definition).map(Id::of) {
            let mut pause = Pause::begin();
            loop {
                let live = self.api.get(&id).await.map_err(Failure::at(&id))?.unwrap_or_default();
                match readiness(&live) {
                    Readiness::Ready => break,
                    _ if Instant::now() < until => pause.sleep().await,
                    Readiness::Waiting(why) | Readiness::Failed(why) => {
                        return Err(Failure::new(Reason::NotReady, format!("{id}: {why}")));
                    }
                }
            }
        }
        Ok(())
    }

    /// Waits until all wanted objects of a component are ready, and also the objects that controllers create for it (`awaited`).
    pub(super) async fn wait_ready(
        &self,
        component: &Component,
        objects: &[Value],
        awaited: &[Id],
        progress: &Progress<'_>,
    ) -> Result<(), Failure> {
        let until = Instant::now() + component.time_to_ready();
        let mut pause = Pause::begin();
        let mut left: Vec<Id> = objects.iter().map(Id::of).collect();
        left.retain(|id| becomes_ready(component, id));
        left.extend_from_slice(awaited);
        let (mut stuck_since, mut is_first) = (None, true);
        loop {
            let mut why = None;
            let (mut still, mut seen) = (Vec::new(), Vec::new());
            for id in left {
                let live = self.api.get(&id).await.map_err(Failure::at(&id))?.unwrap_or_default();
                let state = match of_component(component, &id, &live)? {
                    Readiness::Waiting(_) if live.is_null() && awaited.contains(&id) => {
                        Readiness::Waiting("its controller has not made it".to_owned())
                    }
                    state => state,
                };
                match state {
                    Readiness::Ready => self.retries.forget(&id),
                    // The failure is older than this attempt, which retries.
                    Readiness::Failed(text) if is_first && self.try_again(&id, &live).await? => {
                        why.get_or_insert_with(|| format!("{id}: {text}; it is tried again"));
                        still.push(id);
                    }
                    Readiness::Waiting(text) => {
                        why.get_or_insert_with(|| format!("{id}: {text}"));
                        still.push(id);
                        seen.push(live);
                    }
                    Readiness::Failed(text) => {
                        let text = format!("{id}: {text}{}", self.left_alone(&id));
                        let text = self.with_event(&id, text).await;
                        return Err(Failure::new(Reason::NotReady, text));
                    }
                }
            }
            let Some(mut why) = why else { return Ok(()) };
            is_first = false;
            // Most workloads are ready earlier.
            let (pods, stuck) =
                if pause.is_longest() { self.look_closer(&seen).await? } else { Default::default() };
            // The pod may wait for another component, so this is not a failure yet.
            if let Some(text) = pods.iter().find_map(api::keeps_ending) {
                why = format!("{why}; {text}");
            }
            if let Some(text) = stuck {
                why = format!("{why}; {text}");
                if stuck_since.get_or_insert_with(Instant::now).elapsed() >= self.patience {
                    if !self.look_again(&seen).await? {
                        return Err(Failure::new(Reason::NotReady, why));
                    }
                    stuck_since = None;
                }
            } else {
                stuck_since = None;
            }
            if Instant::now() >= until {
                let first = still.first().cloned();
                let text = match first {
                    Some(id) => self.with_event(&id, why).await,
                    None => why,
                };
                return Err(Failure::new(Reason::NotReady, text));
            }
            progress.waits(&why);
            left = still;
            pause.sleep().await;
        }
    }

    /// The pods of these workloads, and the reason why one of the objects makes no progress.
    async fn look_closer(&self, objects: &[Value]) -> Result<(Vec<Value>, Option<String>), Failure> {
        let pods = self.pods(objects).await;
        let stuck = match pods.iter().find_map(api::stuck) {
            None => self.idle_plan(objects).await?,
            found => found,
        };
        Ok((pods, stuck))
    }

    /// Pods of these workloads. Without permission to list pods, only the time limit of the component applies.
    async fn pods(&self, workloads: &[Value]) -> Vec<Value> {
        let mut all = Vec::new();
        for workload in workloads {
            let Some(query) = api::pods_query(workload) else { continue };
            let pods = Id::new("v1", "Pod", &Id::of(workload).namespace, "");
            all.extend(self.api.list(&pods, &query).await.unwrap_or_default());
        }
        all
    }

    /// Adds the message of the latest event of an object.
    pub(super) async fn with_event(&self, id: &Id, text: String) -> String {
        // Without the event, the text is less helpful but still true.
        match self.api.last_event(id).await {
            Ok(Some(event)) => format!("{text}; its last event: {event}"),
            _ => text,
        }
    }

    /// Waits until the objects with these uids are gone. A failure names an object that is not removed, and what it waits for. An
    /// object that was re-created with the same name has another uid.
    pub(super) async fn wait_gone(&self, deleted: &[(Id, String)], time: Duration) -> Result<(), Failure> {
        let until = Instant::now() + time;
        for (id, uid) in deleted {
            let mut pause = Pause::begin();
            let mut is_first = true;
            while let Some(live) = self.api.get(id).await.map_err(Failure::at(id))? {
                if live["metadata"]["uid"] != uid.as_str() {
                    break;
                }
                if std::mem::take(&mut is_first) {
                    self.help_removal(id, &live).await?;
                } else if let Some(why) =
                    install_plan::removal_failure(&live).filter(|_| install_plan::is_plan(id))
                {
                    let text = format!("{id}: {why}{}", self.left_alone(id));
                    return Err(Failure::new(Reason::NotReady, text));
                }
                if Instant::now() >= until {
                    return Err(self.stuck(id, &live).await);
                }
                pause.sleep().await;
            }
            self.retries.forget(id);
        }
        Ok(())
    }

    /// Failure for an object that is not removed, with the reason. A kind and a namespace wait for their objects.
    async fn stuck(&self, id: &Id, live: &Value) -> Failure {
        let mut left = Vec::new();
        if let Some(kind) = kind_of(live).filter(|_| id.kind == "CustomResourceDefinition") {
            // Without permission to list the objects, the failure names only the kind.
            left = self.api.list(&kind, "limit=1").await.unwrap_or_default();
        }
        if let Some(instance) = left.first() {
            let inner = stuck(&Id::of(instance), instance);
            return Failure { message: format!("{id} waits for its objects: {}", inner.message), ..inner };
        }
        let conditions = live["status"]["conditions"].as_array().into_iter().flatten();
        let remain = |one: &&Value| {
            one["status"] == "True" && one["type"].as_str().is_some_and(|kind| kind.ends_with("Remaining"))
        };
        let what = conditions.filter(remain).filter_map(|one| one["message"].as_str()).next_back();
        match what.filter(|_| id.kind == "Namespace" && live["metadata"]["finalizers"].is_null()) {
            Some(what) => Failure::new(Reason::FinalizerStuck, format!("{id}: {what}")),
            None => stuck(id, live),
        }
    }
}

fn stuck(id: &Id, live: &Value) -> Failure {
    let finalizers = live["metadata"]["finalizers"].as_array();
    let names: Vec<&str> = finalizers.into_iter().flatten().filter_map(Value::as_str).collect();
    let message = if let Some(text) = uninstall::about_removal(id, live) {
        text
    } else if names.is_empty() {
        format!("{id} was deleted and is still there")
    } else {
        let hint = "see whether the controller that owns the finalizer works; without it, remove the finalizer by hand";
        format!("{id} waits for its finalizer {}\nhint: {hint}", names.join(", "))
    };
    Failure::new(Reason::FinalizerStuck, message)
}

/// Whether an object is ready, also by the rule of the component. `live` is null if the object is gone.
fn of_component(component: &Component, id: &Id, live: &Value) -> Result<Readiness, Failure> {
    if live.is_null() {
        return Ok(Readiness::Waiting("it is gone".to_owned()));
    }
    let known = readiness(live);
    let Some(rule) = component.ready.iter().find(|rule| rule.kind == id.kind) else { return Ok(known) };
    let context = minijinja::Value::from_serialize(json!({ "object": live }));
    let holds = rule.when.holds(&context).map_err(|why| Failure::new(Reason::RenderFailed, why))?;
    Ok(if holds { known } else { Readiness::Waiting("it does not report that it works".to_owned()) })
}

/// Whether an object of this kind takes time to become ready.
fn becomes_ready(component: &Component, id: &Id) -> bool {
    let class = class_of_kind(&id.api_version, &id.kind);
    matches!(class, Class::Workload | Class::Definition | Class::Namespace)
        || id.kind == "APIService"
        || install_plan::is_plan(id)
        || component.ready.iter().any(|rule| rule.kind == id.kind)
}
