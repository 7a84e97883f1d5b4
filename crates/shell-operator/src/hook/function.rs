//! Hooks that are Rust functions: their input, and their effects.

use std::collections::BTreeMap;
use std::error::Error;
use std::sync::Arc;

use futures::future::BoxFuture;
use kube::Client;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::context::{BindingContext, Item};
use crate::metrics;
use crate::patch::{self, Propagation};

/// Why a hook failed.
pub type HookError = Box<dyn Error + Send + Sync>;

/// The action of a hook. Async functions from [`Input`] to [`Effects`] are hooks.
pub trait HookBody: Send + Sync + 'static {
    /// Runs the hook once. A failed run is repeated, and none of its effects is applied.
    fn run(&self, input: Input) -> BoxFuture<'static, Result<Effects, HookError>>;
}

impl<F, Fut, E> HookBody for F
where
    F: Fn(Input) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<Effects, E>> + Send + 'static,
    E: Into<HookError>,
{
    fn run(&self, input: Input) -> BoxFuture<'static, Result<Effects, HookError>> {
        let run = self(input);
        Box::pin(async move { run.await.map_err(Into::into) })
    }
}

/// The input of a run.
pub struct Input {
    /// Why the hook is run, in order; at least one reason.
    pub contexts: Vec<BindingContext>,
    pub(crate) snapshots: BTreeMap<String, Vec<Item>>,
    pub(crate) client: Client,
    pub(crate) stop: CancellationToken,
}

impl Input {
    /// All objects of a kubernetes binding at the time of the run, by namespace and name. Empty for bindings whose
    /// objects the run does not get.
    pub fn snapshot(&self, binding: &str) -> &[Item] {
        self.snapshots.get(binding).map_or(&[], Vec::as_slice)
    }

    /// The same, each read as [`Item::parse`] reads it.
    pub fn objects<T: DeserializeOwned>(&self, binding: &str) -> Result<Vec<T>, serde_json::Error> {
        self.snapshot(binding).iter().map(Item::parse).collect()
    }

    /// A client for what snapshots and effects cannot do.
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// Cancelled when the operator ends: a hook that runs long begins nothing new then.
    pub fn stop(&self) -> &CancellationToken {
        &self.stop
    }
}

/// Which object an operation is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    api_version: String,
    kind: String,
    namespace: String,
    name: String,
    subresource: Option<String>,
}

impl Target {
    /// The object of this name; cluster-wide until it is given a namespace.
    pub fn new(api_version: &str, kind: &str, name: &str) -> Self {
        let [api_version, kind, name] = [api_version, kind, name].map(str::to_owned);
        Self { api_version, kind, namespace: String::new(), name, subresource: None }
    }

    /// The object is in this namespace.
    #[must_use]
    pub fn namespace(mut self, namespace: &str) -> Self {
        namespace.clone_into(&mut self.namespace);
        self
    }

    /// A part of the object, like `status`.
    #[must_use]
    pub fn subresource(mut self, subresource: &str) -> Self {
        self.subresource = Some(subresource.to_owned());
        self
    }
}

/// The effects that a run requests. None of them is applied if the run fails.
#[derive(Debug, Default)]
pub struct Effects {
    /// Changes of objects, in order.
    pub patches: Vec<patch::Operation>,
    /// Changes of the hook's metrics.
    pub metrics: Vec<metrics::Operation>,
    /// The answer to the API server, as JSON text.
    pub(crate) answer: Option<String>,
}

impl Effects {
    /// Nothing.
    pub fn new() -> Self {
        Self::default()
    }

    /// Allows the request.
    pub fn allow() -> Self {
        Self::answer(&json!({ "allowed": true }))
    }

    /// Refuses the request, with this text for the person who sent it.
    pub fn deny(message: &str) -> Self {
        Self::answer(&json!({ "allowed": false, "message": message }))
    }

    /// The objects in the requested version.
    pub fn converted(objects: &[Value]) -> Self {
        Self::answer(&json!({ "convertedObjects": objects }))
    }

    fn answer(answer: &Value) -> Self {
        Self { answer: Some(answer.to_string()), ..Self::default() }
    }

    /// Creates an object, or replaces it.
    pub fn create_or_update(&mut self, object: Value) -> &mut Self {
        self.object(object, patch::Action::CreateOrUpdate)
    }

    /// Creates an object, or leaves it as it is.
    pub fn create_if_missing(&mut self, object: Value) -> &mut Self {
        self.object(object, patch::Action::CreateIfNotExists)
    }

    /// Applies a JSON merge patch (RFC 7396).
    pub fn merge_patch(&mut self, target: Target, patch: Value) -> &mut Self {
        self.operation(target, patch::Action::MergePatch(patch))
    }

    /// Applies a JSON patch (RFC 6902).
    pub fn json_patch(&mut self, target: Target, patch: Value) -> &mut Self {
        self.operation(target, patch::Action::JsonPatch(patch))
    }

    /// Deletes an object, if it is there.
    pub fn delete(&mut self, target: Target, propagation: Propagation) -> &mut Self {
        self.operation(target, patch::Action::Delete(propagation))
    }

    /// Sets a gauge.
    pub fn set_metric(&mut self, name: &str, value: f64, labels: &[(&str, &str)]) -> &mut Self {
        self.metric(name, metrics::Action::Set(value), labels)
    }

    /// Adds to a counter.
    pub fn add_metric(&mut self, name: &str, value: f64, labels: &[(&str, &str)]) -> &mut Self {
        self.metric(name, metrics::Action::Add(value), labels)
    }

    fn metric(&mut self, name: &str, action: metrics::Action, labels: &[(&str, &str)]) -> &mut Self {
        let labels = labels.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
        self.metrics.push(metrics::Operation { name: name.to_owned(), action, labels, group: None });
        self
    }

    fn object(&mut self, object: Value, action: fn(Value) -> patch::Action) -> &mut Self {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let target = Target {
            api_version: text(&object["apiVersion"]),
            kind: text(&object["kind"]),
            namespace: text(&object["metadata"]["namespace"]),
            name: text(&object["metadata"]["name"]),
            subresource: None,
        };
        self.operation(target, action(object))
    }

    fn operation(&mut self, target: Target, action: patch::Action) -> &mut Self {
        self.patches.push(patch::Operation {
            api_version: Some(target.api_version).filter(|version| !version.is_empty()),
            kind: target.kind,
            namespace: target.namespace,
            name: target.name,
            subresource: target.subresource,
            action,
            ignore_missing_object: false,
            ignore_hook_error: false,
        });
        self
    }
}

/// A hook's body that can be shared.
pub(crate) type SharedBody = Arc<dyn HookBody>;
