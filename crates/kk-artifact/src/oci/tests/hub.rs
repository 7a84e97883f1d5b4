//! A registry in the process of the test. It accepts the requests that the distribution-spec permits, and refuses documents whose
//! content is missing.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{HeaderMap, Method, StatusCode, Uri, header};
use axum::response::Response;
use serde_json::Value;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

#[derive(Default)]
pub(super) struct Held {
    /// Repository and digest.
    pub(super) blobs: BTreeSet<(String, String)>,
    /// Repository and tag or digest; type and text.
    pub(super) manifests: BTreeMap<(String, String), (String, Bytes)>,
    pub(super) requests: Vec<String>,
    /// Faults for the next requests that begin with these texts.
    faults: HashMap<String, VecDeque<StatusCode>>,
    /// The projects of a Harbor. `None`: it is not a Harbor.
    pub(super) projects: Option<BTreeSet<String>>,
    /// The required `Authorization`.
    login: Option<String>,
}

/// Stops when dropped.
pub(super) struct Hub {
    pub(super) address: String,
    held: Arc<Mutex<Held>>,
    task: JoinHandle<()>,
}

impl Drop for Hub {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Hub {
    pub(super) async fn new() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let held: Arc<Mutex<Held>> = Arc::default();
        let router = Router::new().fallback(answer).with_state(held.clone());
        let router = router.layer(axum::extract::DefaultBodyLimit::disable());
        let task = tokio::spawn(async { axum::serve(listener, router).await.unwrap() });
        Self { address, held, task }
    }

    pub(super) fn held<T>(&self, look: impl FnOnce(&mut Held) -> T) -> T {
        look(&mut self.held.lock().unwrap())
    }

    pub(super) fn faults(&self, request: &str, codes: impl IntoIterator<Item = StatusCode>) {
        self.held(|held| held.faults.entry(request.to_owned()).or_default().extend(codes));
    }

    pub(super) fn login(&self, header: &str) {
        self.held(|held| held.login = Some(header.to_owned()));
    }

    /// The number of requests since the last call that begin with one of these.
    pub(super) fn asked(&self, starts: &[&str]) -> usize {
        let requests = self.held(|held| std::mem::take(&mut held.requests));
        requests.iter().filter(|seen| starts.iter().any(|start| seen.starts_with(start))).count()
    }
}

async fn answer(
    State(held): State<Arc<Mutex<Held>>>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let mut held = held.lock().unwrap();
    let seen = format!("{method} {uri}");
    held.requests.push(seen.clone());
    let login = headers.get(header::AUTHORIZATION).map(|value| value.to_str().unwrap().to_owned());
    if held.login.is_some() && held.login != login {
        let basic = Response::builder().status(401).header(header::WWW_AUTHENTICATE, "Basic realm=\"hub\"");
        return basic.body(Body::empty()).unwrap();
    }
    let fault = held.faults.iter_mut().find(|(start, codes)| seen.starts_with(*start) && !codes.is_empty());
    if let Some(code) = fault.and_then(|(_, codes)| codes.pop_front()) {
        return status(code);
    }
    let query: HashMap<_, _> = uri
        .query()
        .into_iter()
        .flat_map(|query| query.split('&'))
        .filter_map(|pair| pair.split_once('='))
        .collect();
    let query = |key: &str| query.get(key).map(|value| value.replace("%3A", ":").replace("%2F", "/"));
    if let Some(code) = held.of_harbor(&method, uri.path(), query("project_name"), &body) {
        return status(code);
    }
    let path = uri.path().trim_start_matches("/v2/");
    if let Some((repository, reference)) = path.split_once("/manifests/") {
        held.manifest(&method, repository, reference, &headers, &body)
    } else if let Some((repository, _)) = path.split_once("/blobs/uploads/") {
        held.upload(&method, repository, query("mount").zip(query("from")), query("digest"), &body)
    } else if let Some((repository, digest)) = path.split_once("/blobs/") {
        let there = held.blobs.contains(&(repository.to_owned(), digest.to_owned()));
        status(if there { StatusCode::OK } else { StatusCode::NOT_FOUND })
    } else {
        status(StatusCode::OK)
    }
}

impl Held {
    /// A Harbor's answers about its projects, and to writes into missing projects.
    fn of_harbor(
        &mut self,
        method: &Method,
        path: &str,
        asked: Option<String>,
        body: &Bytes,
    ) -> Option<StatusCode> {
        let projects = self.projects.as_mut()?;
        if path == "/api/v2.0/projects" {
            let is_there = asked.is_some_and(|name| projects.contains(&name));
            if method == Method::HEAD {
                return Some(if is_there { StatusCode::OK } else { StatusCode::NOT_FOUND });
            }
            let wanted: Value = serde_json::from_slice(body).unwrap();
            assert_eq!(wanted["metadata"]["public"], "false");
            let is_new = projects.insert(wanted["project_name"].as_str().unwrap().to_owned());
            return Some(if is_new { StatusCode::CREATED } else { StatusCode::CONFLICT });
        }
        let project = path.trim_start_matches("/v2/").split('/').next()?;
        let is_missing = method != Method::GET && method != Method::HEAD && !projects.contains(project);
        is_missing.then_some(StatusCode::NOT_FOUND)
    }

    fn upload(
        &mut self,
        method: &Method,
        repository: &str,
        mount: Option<(String, String)>,
        digest: Option<String>,
        body: &Bytes,
    ) -> Response {
        if method == Method::POST {
            if let Some((digest, from)) = mount
                && self.blobs.contains(&(from, digest.clone()))
            {
                self.blobs.insert((repository.to_owned(), digest));
                return location(StatusCode::CREATED, "/v2/x");
            }
            return location(StatusCode::ACCEPTED, &format!("/v2/{repository}/blobs/uploads/1"));
        }
        if digest != Some(format!("sha256:{}", kk_util::sha256(body))) {
            return refused("DIGEST_INVALID");
        }
        self.blobs.insert((repository.to_owned(), digest.unwrap()));
        location(StatusCode::CREATED, "/v2/x")
    }

    fn manifest(
        &mut self,
        method: &Method,
        repository: &str,
        reference: &str,
        headers: &HeaderMap,
        body: &Bytes,
    ) -> Response {
        let of = |reference: &str| (repository.to_owned(), reference.to_owned());
        if method != Method::PUT {
            let Some((media_type, text)) = self.manifests.get(&of(reference)) else {
                return status(StatusCode::NOT_FOUND);
            };
            let digest = format!("sha256:{}", kk_util::sha256(text));
            let answer = Response::builder().header(header::CONTENT_TYPE, media_type);
            return answer.header("Docker-Content-Digest", digest).body(Body::from(text.clone())).unwrap();
        }
        let value: Value = serde_json::from_slice(body).unwrap();
        let list = |key: &str| value[key].as_array().cloned().unwrap_or_default();
        let named = |value: &Value| of(value["digest"].as_str().unwrap());
        let children = list("manifests").iter().all(|child| self.manifests.contains_key(&named(child)));
        let config = value.get("config").is_none_or(|config| self.blobs.contains(&named(config)));
        if !children || !config || !list("layers").iter().all(|layer| self.blobs.contains(&named(layer))) {
            return refused("MANIFEST_BLOB_UNKNOWN");
        }
        let media_type = headers[header::CONTENT_TYPE].to_str().unwrap().to_owned();
        for reference in [reference.to_owned(), format!("sha256:{}", kk_util::sha256(body))] {
            self.manifests.insert(of(&reference), (media_type.clone(), body.clone()));
        }
        // Not all registries return its location.
        status(StatusCode::CREATED)
    }
}

fn status(code: StatusCode) -> Response {
    Response::builder().status(code).body(Body::empty()).unwrap()
}

fn location(code: StatusCode, to: &str) -> Response {
    Response::builder().status(code).header(header::LOCATION, to).body(Body::empty()).unwrap()
}

fn refused(code: &str) -> Response {
    let text = format!(r#"{{"errors":[{{"code":"{code}","message":"refused: {code}"}}]}}"#);
    Response::builder().status(400).body(Body::from(text)).unwrap()
}
