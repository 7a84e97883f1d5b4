//! Waiting for what the cluster does by itself: by looking, with pauses that grow, and never for ever.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::pass::Progress;
use super::remove::kind_of;
use super::{Engine, Failure, Reason, uninstall};
use crate::api::{self, Id, Readiness, install_plan, readiness};
use crate::payload::Component;
use crate::render::{Class, class_of, class_of_kind};

/// Pauses between looks.
const FIRST: Duration = Duration::from_millis(100);
const LONGEST: Duration = Duration::from_secs(2);
/// How long definitions may take until their kinds are known.
const ESTABLISHED: Duration = Duration::from_secs(30);

/// What cannot go on for so long does not get over it: a registry that is away for a moment is no failure.
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
    /// Waits until the kinds of new definitions are known.
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

    /// Waits until everything of a component that is wanted works, and what controllers make of it (`awaited`).
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
                    // It failed before this attempt, which is there to do better.
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
            // Most workloads are ready before that.
            let (pods, stuck) =
                if pause.is_longest() { self.look_closer(&seen).await? } else { Default::default() };
            // It may wait for another component, so it is no failure yet.
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

    /// The pods of these workloads, and why nothing goes on with one of the objects.
    async fn look_closer(&self, objects: &[Value]) -> Result<(Vec<Value>, Option<String>), Failure> {
        let pods = self.pods(objects).await;
        let stuck = match pods.iter().find_map(api::stuck) {
            None => self.idle_plan(objects).await?,
            found => found,
        };
        Ok((pods, stuck))
    }

    /// Who cannot see pods waits as long as the component may take.
    async fn pods(&self, workloads: &[Value]) -> Vec<Value> {
        let mut all = Vec::new();
        for workload in workloads {
            let Some(query) = api::pods_query(workload) else { continue };
            let pods = Id::new("v1", "Pod", &Id::of(workload).namespace, "");
            all.extend(self.api.list(&pods, &query).await.unwrap_or_default());
        }
        all
    }

    /// Adds what Kubernetes said last about an object.
    pub(super) async fn with_event(&self, id: &Id, text: String) -> String {
        // Without it the text is less helpful, and as true.
        match self.api.last_event(id).await {
            Ok(Some(event)) => format!("{text}; its last event: {event}"),
            _ => text,
        }
    }

    /// Waits until objects with these uids are gone; names one that does not go, and what it waits for. One that somebody makes
    /// again under the same name is another.
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

    /// What an object waits for that does not go. A kind and a namespace wait for what is in them.
    async fn stuck(&self, id: &Id, live: &Value) -> Failure {
        let mut left = Vec::new();
        if let Some(kind) = kind_of(live).filter(|_| id.kind == "CustomResourceDefinition") {
            // Who cannot see them names the kind only.
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

/// Whether an object works, also by the component's own rule. It is null when it is gone.
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

/// Whether it takes time until an object works.
fn becomes_ready(component: &Component, id: &Id) -> bool {
    let class = class_of_kind(&id.api_version, &id.kind);
    matches!(class, Class::Workload | Class::Definition | Class::Namespace)
        || id.kind == "APIService"
        || install_plan::is_plan(id)
        || component.ready.iter().any(|rule| rule.kind == id.kind)
}
