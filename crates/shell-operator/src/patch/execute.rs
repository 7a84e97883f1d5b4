//! Applies the operations of a patch file.

use std::time::Duration;

use http::{Method, Request};
use kube::Client;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::{Action, Operation, Propagation};
use crate::cluster::{FindError, Resource, Resources, explain};
use crate::jq::Filter;
use crate::json::{self, Numbers};
use crate::limiter::Limiter;

/// Attempts when another client changes the object at the same time.
const ATTEMPTS: u32 = 5;
/// How long a foreground deletion is waited for.
const DELETION: Duration = Duration::from_secs(20);

/// Changes objects, with its own limit of requests.
pub struct Patcher {
    client: Client,
    resources: Resources,
    limiter: Limiter,
}

/// An operation that failed.
#[derive(Debug, thiserror::Error)]
#[error("{operation} {object}: {why}")]
pub struct PatchError {
    /// Its name in the file.
    pub operation: &'static str,
    /// The object.
    pub object: String,
    /// Why.
    pub why: String,
}

/// The failure of a request, before it is known whether it matters.
enum Failure {
    Client(kube::Error),
    Other(String),
}

impl From<kube::Error> for Failure {
    fn from(error: kube::Error) -> Self {
        Self::Client(error)
    }
}

impl Failure {
    /// The API server's reason; empty if no request was sent or the response has no reason.
    fn reason(&self) -> &str {
        if let Self::Client(kube::Error::Api(status)) = self { &status.reason } else { "" }
    }

    fn text(&self) -> String {
        match self {
            Self::Client(error) => explain(error),
            Self::Other(text) => text.clone(),
        }
    }
}

// Reasons rather than status codes: 409 also means that a quota was changed meanwhile, and then nothing was created.
const NOT_FOUND: &str = "NotFound";
const ALREADY_EXISTS: &str = "AlreadyExists";
const CONFLICT: &str = "Conflict";

impl Patcher {
    /// A patcher that sends at most `qps` requests a second, and `burst` at once.
    pub fn new(client: Client, qps: f64, burst: u32) -> Self {
        let interval = if qps > 0.0 { Duration::from_secs_f64(1.0 / qps) } else { Duration::ZERO };
        Self { resources: Resources::new(client.clone()), client, limiter: Limiter::new(interval, burst) }
    }

    /// Does the operations in order. A failed operation does not keep the others back; all errors are returned.
    pub async fn execute(&self, operations: &[Operation]) -> Vec<PatchError> {
        let mut errors = Vec::new();
        for operation in operations {
            if let Err(failure) = self.one(operation).await {
                errors.push(PatchError {
                    operation: operation.action.name(),
                    object: format!("{}/{}/{}", operation.namespace, operation.kind, operation.name),
                    why: failure.text(),
                });
            }
        }
        errors
    }

    async fn one(&self, operation: &Operation) -> Result<(), Failure> {
        let found = self.resources.find(operation.api_version.as_deref(), &operation.kind).await;
        let resource = match found {
            Ok(resource) => resource,
            Err(FindError::Missing { .. }) if operation.ignore_missing_object => return Ok(()),
            Err(FindError::Client(error)) => return Err(error.into()),
            Err(error) => return Err(Failure::Other(error.to_string())),
        };
        let target = Target::new(operation, &resource)?;
        let result = match &operation.action {
            Action::Create(object) => self.create(&target, object).await,
            Action::CreateIfNotExists(object) => match self.create(&target, object).await {
                Err(failure) if failure.reason() == ALREADY_EXISTS => Ok(()),
                result => result,
            },
            Action::CreateOrUpdate(object) => match self.create(&target, object).await {
                Err(failure) if failure.reason() == ALREADY_EXISTS => self.replace(&target, object).await,
                result => result,
            },
            Action::Delete(propagation) => self.delete(&target, *propagation).await,
            Action::MergePatch(patch) => self.patch(&target, "application/merge-patch+json", patch).await,
            Action::JsonPatch(patch) => self.patch(&target, "application/json-patch+json", patch).await,
            Action::JqPatch(filter) => self.jq_patch(&target, filter).await,
        };
        match result {
            Err(failure) if failure.reason() == NOT_FOUND && operation.ignore_missing_object => Ok(()),
            result => result,
        }
    }

    async fn create(&self, target: &Target, object: &Value) -> Result<(), Failure> {
        let object = target.complete(object);
        self.send(Method::POST, &target.collection, Some(("application/json", &object))).await.map(drop)
    }

    async fn replace(&self, target: &Target, object: &Value) -> Result<(), Failure> {
        self.update(target, |current| {
            let mut object = target.complete(object);
            object["metadata"]["resourceVersion"] = current["metadata"]["resourceVersion"].clone();
            Ok(object)
        })
        .await
    }

    async fn jq_patch(&self, target: &Target, filter: &Filter) -> Result<(), Failure> {
        self.update(target, |current| run_filter(filter, current, &target.kind).map_err(Failure::Other)).await
    }

    /// Reads the object, changes it and writes it back; again when another client was faster.
    async fn update(
        &self,
        target: &Target,
        change: impl Fn(&Value) -> Result<Value, Failure>,
    ) -> Result<(), Failure> {
        for attempt in 1.. {
            let current = self.send(Method::GET, &target.object, None).await?;
            let changed = change(&current)?;
            if changed == current {
                break;
            }
            let path = target.object_or_subresource();
            match self.send(Method::PUT, &path, Some(("application/json", &changed))).await {
                Err(failure) if failure.reason() == CONFLICT && attempt < ATTEMPTS => {
                    tokio::time::sleep(Duration::from_millis(10 << attempt)).await;
                }
                result => return result.map(drop),
            }
        }
        Ok(())
    }

    async fn patch(&self, target: &Target, kind: &str, patch: &Value) -> Result<(), Failure> {
        self.send(Method::PATCH, &target.object_or_subresource(), Some((kind, patch))).await.map(drop)
    }

    async fn delete(&self, target: &Target, propagation: Propagation) -> Result<(), Failure> {
        let policy = match propagation {
            Propagation::Foreground => "Foreground",
            Propagation::Background => "Background",
            Propagation::Orphan => "Orphan",
        };
        let options = json!({ "kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": policy });
        let answer =
            match self.send(Method::DELETE, &target.object, Some(("application/json", &options))).await {
                Err(failure) if failure.reason() == NOT_FOUND => return Ok(()),
                result => result?,
            };
        if propagation != Propagation::Foreground {
            return Ok(());
        }
        // The answer is the object when it still has to wait for something, otherwise a Status about it.
        let uid = answer.pointer("/metadata/uid").or_else(|| answer.pointer("/details/uid"));
        self.wait_until_gone(target, uid).await
    }

    /// Waits until the object no longer exists, or another object has its name.
    async fn wait_until_gone(&self, target: &Target, uid: Option<&Value>) -> Result<(), Failure> {
        let (until, mut pause) = (Instant::now() + DELETION, Duration::from_millis(50));
        loop {
            match self.send(Method::GET, &target.object, None).await {
                Err(failure) if failure.reason() == NOT_FOUND => return Ok(()),
                Err(failure) => return Err(failure),
                Ok(found) if uid.is_some() && found.pointer("/metadata/uid") != uid => return Ok(()),
                Ok(_) if Instant::now() > until => {
                    return Err(Failure::Other(format!("it is still there after {DELETION:?}")));
                }
                Ok(_) => tokio::time::sleep(pause).await,
            }
            pause = (pause * 2).min(Duration::from_secs(1));
        }
    }

    async fn send(&self, method: Method, path: &str, body: Option<(&str, &Value)>) -> Result<Value, Failure> {
        self.limiter.wait().await;
        let mut request = Request::builder().method(method).uri(path);
        let mut bytes = Vec::new();
        if let Some((kind, value)) = body {
            request = request.header("Content-Type", kind);
            bytes = value.to_string().into_bytes();
        }
        let request = request.body(bytes).map_err(|error| Failure::Other(error.to_string()))?;
        Ok(self.client.request(request).await?)
    }
}

/// Where an operation's object is.
struct Target {
    collection: String,
    object: String,
    subresource: Option<String>,
    api_version: String,
    kind: String,
}

impl Target {
    fn new(operation: &Operation, resource: &Resource) -> Result<Self, Failure> {
        if resource.namespaced && operation.namespace.is_empty() {
            let text = format!("{} lives in namespaces, but no namespace is given", resource.kind);
            return Err(Failure::Other(text));
        }
        let collection = resource.collection(Some(&operation.namespace));
        Ok(Self {
            object: format!("{collection}/{}", operation.name),
            collection,
            subresource: operation.subresource.clone(),
            api_version: resource.api_version(),
            kind: resource.kind.clone(),
        })
    }

    fn object_or_subresource(&self) -> String {
        match &self.subresource {
            Some(name) => format!("{}/{name}", self.object),
            None => self.object.clone(),
        }
    }

    /// The object with the version and kind that the API server requires.
    fn complete(&self, object: &Value) -> Value {
        let mut object = object.clone();
        object["apiVersion"] = self.api_version.as_str().into();
        object["kind"] = self.kind.as_str().into();
        object
    }
}

/// The result of `filter` for `object`, which must be one object.
fn run_filter(filter: &Filter, object: &Value, kind: &str) -> Result<Value, String> {
    let input = json::parse(object.to_string().as_bytes()).map_err(|error| error.to_string())?;
    let results = filter.run(input).map_err(|error| error.about(kind))?;
    let [result] = results.as_slice() else {
        return Err(format!("the jqFilter must have one result, but it has {}", results.len()));
    };
    let bytes = json::to_vec(result, Numbers::Exact).map_err(|error| error.to_string())?;
    let value: Value = serde_json::from_slice(&bytes).map_err(|error| error.to_string())?;
    if value.is_object() { Ok(value) } else { Err("the jqFilter's result must be an object".to_owned()) }
}
