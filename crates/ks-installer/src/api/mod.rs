//! Reads, applies and deletes single objects of the API server, and interprets them.
//!
//! [`Api`] sends all requests except for watches, the Lease and their related requests, which shell-operator sends.

mod compare;
mod hidden;
mod id;
pub mod install_plan;
mod pods;
mod ready;

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use http::{Method, Request};
use kube::Client;
use serde_json::{Value, json};
use shell_operator::cluster::{self, ClientSettings, FindError, Resource, Resources};
use shell_operator::metrics::OperatorMetrics;

pub use compare::{contains, differences, digest};
pub use id::Id;
pub use pods::{has_ended, is_pod_of, keeps_ending, pods_query, stuck};
pub use ready::{Readiness, readiness};

/// Field manager of applied fields.
const MANAGER: &str = "ks-installer";
/// Timeout of a request. A webhook may take 30 s to respond.
const TIMEOUT: Duration = Duration::from_secs(40);
/// Attempts for a request that the API server defers, as in kubectl.
const TRIES: u32 = 10;
/// Longest pause that the API server may request.
const LONGEST_PAUSE: Duration = Duration::from_secs(30);
/// Objects of one page of a list, as many as kubectl requests at once.
const PAGE: usize = 500;

/// The API server.
pub struct Api {
    client: Client,
    kinds: Resources,
    /// Known kinds by API version and kind. The resource of a kind does not change while the kind exists.
    found: Mutex<HashMap<(String, String), Resource>>,
}

/// Reason why a request failed.
#[derive(Debug, thiserror::Error)]
pub enum ApiError {
    /// The API server does not know the kind.
    #[error("{0}")]
    NoKind(String),
    /// The API server refused the request.
    #[error("{message}")]
    Refused {
        /// HTTP status code.
        code: u16,
        /// Message of the API server, with a hint.
        message: String,
    },
    /// The API server did not respond.
    #[error("the API server does not answer: {0}")]
    Unreachable(String),
}

impl ApiError {
    /// Whether another client was faster.
    pub fn is_conflict(&self) -> bool {
        matches!(self, Self::Refused { code: 409, .. })
    }

    /// Whether the object does not exist.
    pub fn is_not_found(&self) -> bool {
        matches!(self, Self::Refused { code: 404, .. })
    }
}

impl From<kube::Error> for ApiError {
    fn from(error: kube::Error) -> Self {
        let message = cluster::explain(&error);
        match error {
            kube::Error::Api(status) => {
                Self::Refused { code: status.code, message: hidden::without_secrets(&message) }
            }
            _ => Self::Unreachable(message),
        }
    }
}

impl From<FindError> for ApiError {
    fn from(error: FindError) -> Self {
        match error {
            FindError::Client(error) => error.into(),
            missing @ FindError::Missing { .. } => Self::NoKind(missing.to_string()),
        }
    }
}

/// A page of a list.
#[derive(Default)]
struct Page {
    items: Vec<Value>,
    /// Token that requests the next page, if there is one.
    next: Option<String>,
}

impl Api {
    /// Creates a client for the API server that `settings` specify. It does not connect yet.
    pub async fn connect(settings: &ClientSettings) -> Result<Self, cluster::ClientError> {
        let settings = ClientSettings { timeout: Some(TIMEOUT), limit: None, ..settings.clone() };
        let metrics = OperatorMetrics::new("ks_installer_");
        let client = cluster::connect(&settings, |address| metrics.of_client(address)).await?;
        Ok(Self { kinds: Resources::new(client.clone()), client, found: Mutex::default() })
    }

    /// Version of Kubernetes, like `v1.36.0`.
    pub async fn version(&self) -> Result<String, ApiError> {
        Ok(self.client.apiserver_version().await?.git_version)
    }

    /// The first nodes, at most `most`.
    pub async fn nodes(&self, most: usize) -> Result<Vec<Value>, ApiError> {
        self.list(&Id::new("v1", "Node", "", ""), &format!("limit={most}")).await
    }

    /// The object, or `None` if it or its kind does not exist.
    pub async fn get(&self, id: &Id) -> Result<Option<Value>, ApiError> {
        let path = match self.path(id).await {
            Ok((path, _)) => path,
            Err(ApiError::NoKind(_)) => return Ok(None),
            Err(error) => return Err(error),
        };
        found(self.send(Method::GET, &path, None).await)
    }

    /// Objects of a kind, in one namespace or in all. An unknown kind has no objects.
    pub async fn list(&self, of: &Id, query: &str) -> Result<Vec<Value>, ApiError> {
        Ok(self.page(of, query).await?.items)
    }

    /// Objects of a kind that `keep` accepts. They are requested in pages, because all of them may need too much memory.
    pub async fn list_where(&self, of: &Id, keep: impl Fn(&Value) -> bool) -> Result<Vec<Value>, ApiError> {
        let (mut kept, mut query) = (Vec::new(), format!("limit={PAGE}"));
        loop {
            let page = self.page(of, &query).await?;
            kept.extend(page.items.into_iter().filter(&keep));
            let Some(next) = page.next else { return Ok(kept) };
            query = format!("limit={PAGE}&continue={next}");
        }
    }

    async fn page(&self, of: &Id, query: &str) -> Result<Page, ApiError> {
        let resource = match self.find(of).await {
            Ok(resource) => resource,
            Err(ApiError::NoKind(_)) => return Ok(Page::default()),
            Err(error) => return Err(error),
        };
        let path = resource.collection(Some(&of.namespace));
        let list = found(self.send(Method::GET, &format!("{path}?{query}"), None).await)?;
        let mut list = list.unwrap_or_default();
        let Value::Array(mut items) = list["items"].take() else { return Ok(Page::default()) };
        for item in &mut items {
            item["apiVersion"] = of.api_version.clone().into();
            item["kind"] = resource.kind.clone().into();
        }
        let next = list["metadata"]["continue"].as_str().filter(|next| !next.is_empty());
        Ok(Page { items, next: next.map(str::to_owned) })
    }

    /// Applies an object on the server, which makes ks-installer the owner of these fields. Returns the resulting object.
    pub async fn apply(&self, object: &Value, dry_run: bool) -> Result<Value, ApiError> {
        let (path, resource) = self.path(&Id::of(object)).await?;
        let mut object = object.clone();
        if let (false, Some(metadata)) = (resource.namespaced, object["metadata"].as_object_mut()) {
            metadata.remove("namespace");
        }
        let dry_run = if dry_run { "&dryRun=All" } else { "" };
        let path = format!("{path}?fieldManager={MANAGER}&force=true{dry_run}");
        self.send(Method::PATCH, &path, Some(("application/apply-patch+yaml", &object))).await
    }

    /// Applies a JSON merge patch to an object, or to one of its subresources, such as `status`.
    pub async fn merge(&self, id: &Id, subresource: &str, change: &Value) -> Result<Value, ApiError> {
        let (mut path, _) = self.path(id).await?;
        if !subresource.is_empty() {
            path = format!("{path}/{subresource}");
        }
        let path = format!("{path}?fieldManager={MANAGER}");
        self.send(Method::PATCH, &path, Some(("application/merge-patch+json", change))).await
    }

    /// Creates an object.
    pub async fn create(&self, object: &Value) -> Result<Value, ApiError> {
        let id = Id::of(object);
        let path = self.find(&id).await?.collection(Some(&id.namespace));
        let path = format!("{path}?fieldManager={MANAGER}");
        self.send(Method::POST, &path, Some(("application/json", object))).await
    }

    /// Requests the deletion of the object with this `uid`, or of any object with this name if `uid` is empty. It is not an error
    /// if the object no longer exists or was replaced. Returns whether the object is known to be gone: its deletion may have to
    /// wait for finalizers.
    pub async fn delete(&self, id: &Id, uid: &str) -> Result<bool, ApiError> {
        let (path, _) = match self.path(id).await {
            Err(ApiError::NoKind(_)) => return Ok(true),
            other => other?,
        };
        let mut options =
            json!({ "kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": "Background" });
        if !uid.is_empty() {
            options["preconditions"] = json!({ "uid": uid });
        }
        match found(self.send(Method::DELETE, &path, Some(("application/json", &options))).await) {
            // The response is the last state of the object, or a status.
            Ok(last) => Ok(last.is_none_or(|last| last["metadata"]["deletionTimestamp"].is_null())),
            // Another object has this name, or the namespace is about to be deleted.
            Err(error) if error.is_conflict() => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Message of the latest event of an object.
    pub async fn last_event(&self, id: &Id) -> Result<Option<String>, ApiError> {
        let events = Id::new("v1", "Event", &id.namespace, "");
        let query = format!("fieldSelector=involvedObject.kind={},involvedObject.name={}", id.kind, id.name);
        let mut events = self.list(&events, &query).await?;
        let time = |event: &Value| {
            let times =
                [&event["lastTimestamp"], &event["eventTime"], &event["metadata"]["creationTimestamp"]];
            times.iter().find_map(|time| time.as_str()).unwrap_or_default().to_owned()
        };
        events.sort_by_key(time);
        Ok(events.last().and_then(|event| event["message"].as_str()).map(str::to_owned))
    }

    async fn find(&self, id: &Id) -> Result<Resource, ApiError> {
        let key = (id.api_version.clone(), id.kind.clone());
        if let Some(resource) = self.found().get(&key).cloned() {
            return Ok(resource);
        }
        let resource = self.kinds.find(Some(&id.api_version), &id.kind).await?;
        self.found().insert(key, resource.clone());
        Ok(resource)
    }

    fn found(&self) -> std::sync::MutexGuard<'_, HashMap<(String, String), Resource>> {
        self.found.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn path(&self, id: &Id) -> Result<(String, Resource), ApiError> {
        let resource = self.find(id).await?;
        Ok((format!("{}/{}", resource.collection(Some(&id.namespace)), id.name), resource))
    }

    async fn send(
        &self,
        method: Method,
        path: &str,
        body: Option<(&str, &Value)>,
    ) -> Result<Value, ApiError> {
        let bytes = body.map(|(_, body)| body.to_string().into_bytes()).unwrap_or_default();
        let mut tries = 1;
        let answer = loop {
            let mut request = Request::builder().method(method.clone()).uri(path);
            if let Some((kind, _)) = body {
                request = request.header("Content-Type", kind);
            }
            let request = request.body(bytes.clone());
            let request = request.map_err(|error| ApiError::Unreachable(error.to_string()))?;
            let answer = self.client.request::<Value>(request).await;
            match answer.as_ref().err().and_then(pause_asked_for) {
                Some(pause) if tries < TRIES => tokio::time::sleep(pause).await,
                _ => break answer,
            }
            tries += 1;
        };
        if let Err(kube::Error::Api(status)) = &answer
            && status.code == 404
            && status.details.as_ref().is_none_or(|details| details.name.is_empty())
        {
            // The response names no object, so a kind is gone.
            self.found().clear();
        }
        Ok(answer?)
    }
}

/// Pause before a request is repeated that the API server did not begin, because of too many requests or because the storage of
/// the kind is not ready yet.
fn pause_asked_for(error: &kube::Error) -> Option<Duration> {
    let kube::Error::Api(status) = error else { return None };
    let said = status.details.as_ref().map_or(0, |details| details.retry_after_seconds);
    (status.code == 429).then(|| Duration::from_secs(u64::from(said.max(1))).min(LONGEST_PAUSE))
}

fn found(answer: Result<Value, ApiError>) -> Result<Option<Value>, ApiError> {
    match answer {
        Ok(value) => Ok(Some(value)),
        Err(error) if error.is_not_found() => Ok(None),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader, Write};
    use std::net::TcpListener;

    use shell_operator::cluster::install_crypto_provider;

    use super::*;

    /// An API server that sends these responses, each on its own connection. It returns the paths of the requests.
    async fn api(answers: Vec<String>) -> (Api, std::thread::JoinHandle<Vec<String>>) {
        install_crypto_provider();
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let dir = tempfile::TempDir::new().unwrap();
        let kubeconfig = dir.path().join("kubeconfig");
        let text = format!(
            "apiVersion: v1\nkind: Config\ncurrent-context: x\ncontexts: [{{name: x, context: {{cluster: c, user: u}}}}]\n\
             clusters: [{{name: c, cluster: {{server: 'http://{}'}}}}]\nusers: [{{name: u, user: {{}}}}]\n",
            listener.local_addr().unwrap()
        );
        std::fs::write(&kubeconfig, text).unwrap();
        let settings = ClientSettings { kubeconfig: Some(kubeconfig), ..ClientSettings::default() };
        let api = Api::connect(&settings).await.unwrap();
        let serve = move || {
            let serve_one = |answer: String| {
                let (mut client, _) = listener.accept().unwrap();
                let lines = BufReader::new(client.try_clone().unwrap()).lines();
                let head: Vec<String> =
                    lines.map_while(Result::ok).take_while(|line| !line.is_empty()).collect();
                client.write_all(answer.as_bytes()).unwrap();
                head[0].split(' ').nth(1).unwrap().to_owned()
            };
            answers.into_iter().map(serve_one).collect()
        };
        (api, std::thread::spawn(serve))
    }

    fn answer(status: &str, body: &Value) -> String {
        let body = body.to_string();
        format!(
            "HTTP/1.1 {status}\r\nContent-Type: application/json\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        )
    }

    #[tokio::test]
    async fn a_request_that_is_put_off_is_sent_again() {
        let busy = json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "reason": "TooManyRequests",
            "message": "storage is (re)initializing", "details": {"retryAfterSeconds": 1}, "code": 429});
        let list =
            json!({"kind": "NamespaceList", "apiVersion": "v1", "items": [{"metadata": {"name": "a"}}]});
        let put_off = answer("429 Too Many Requests", &busy);
        let (api, server) = api(vec![put_off.clone(), put_off, answer("200 OK", &list)]).await;
        api.found().insert(("v1".to_owned(), "Namespace".to_owned()), Resource::namespaces());
        let found = api.list(&Id::new("v1", "Namespace", "", ""), "").await.unwrap();
        assert_eq!(found.len(), 1);
        assert_eq!(server.join().unwrap().len(), 3);
    }

    #[tokio::test]
    async fn objects_are_selected_page_by_page() {
        let page = |names: [&str; 2], next: Value| {
            let items = names.map(|name| json!({"metadata": {"name": name}}));
            answer(
                "200 OK",
                &json!({"kind": "NamespaceList", "apiVersion": "v1", "metadata": {"continue": next}, "items": items}),
            )
        };
        let (api, server) = api(vec![
            page(["a", "b"], json!("first")),
            page(["c", "a-d"], json!("second")),
            page(["a-e", "f"], Value::Null),
        ])
        .await;
        api.found().insert(("v1".to_owned(), "Namespace".to_owned()), Resource::namespaces());
        let begins_with_a =
            |object: &Value| object["metadata"]["name"].as_str().is_some_and(|name| name.starts_with('a'));
        let found = api.list_where(&Id::new("v1", "Namespace", "", ""), begins_with_a).await.unwrap();
        let found: Vec<String> = found.iter().map(|object| Id::of(object).to_string()).collect();
        assert_eq!(found, ["Namespace a", "Namespace a-d", "Namespace a-e"]);
        let path = "/api/v1/namespaces?limit=500";
        let paths = [path.to_owned(), format!("{path}&continue=first"), format!("{path}&continue=second")];
        assert_eq!(server.join().unwrap(), paths);
    }
}
