//! The objects that the operator watches, and a client of its own to make and change them.

use std::pin::pin;
use std::time::{Duration, Instant};

use futures::{AsyncBufReadExt, StreamExt};
use http::{Method, Request};
use kube::Client;
use kube::config::{Config, KubeConfigOptions, Kubeconfig};
use serde_json::{Value, json};
use tokio::runtime::Runtime;

use crate::control_plane::ControlPlane;

/// Objects of a set.
pub(crate) const COUNT: usize = 10_000;
/// Requests at the same time.
const AT_ONCE: usize = 16;

/// A client of the API server.
pub(crate) struct Api {
    client: Client,
    runtime: Runtime,
}

fn collection(namespace: &str) -> String {
    format!("/api/v1/namespaces/{namespace}/configmaps")
}

impl Api {
    pub(crate) fn of(plane: &ControlPlane) -> Self {
        // Fails only when it was done before.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let runtime = Runtime::new().unwrap();
        let kubeconfig = Kubeconfig::read_from(plane.kubeconfig()).unwrap();
        let client = runtime.block_on(async {
            let options = KubeConfigOptions::default();
            let config = Config::from_custom_kubeconfig(kubeconfig, &options).await.unwrap();
            Client::try_from(config).unwrap()
        });
        Self { client, runtime }
    }

    async fn send(&self, method: Method, path: &str, kind: &str, body: &Value) -> Value {
        let request = Request::builder().method(method).uri(path).header("Content-Type", kind);
        self.client.request(request.body(body.to_string().into_bytes()).unwrap()).await.unwrap()
    }

    /// Makes a namespace.
    pub(crate) fn namespace(&self, name: &str) {
        let object = json!({ "metadata": { "name": name } });
        self.runtime.block_on(self.send(Method::POST, "/api/v1/namespaces", "application/json", &object));
    }

    /// Makes a namespace with [`COUNT`] `ConfigMaps` of `size` bytes.
    pub(crate) fn fill(&self, namespace: &str, size: usize) {
        self.namespace(namespace);
        let collection = collection(namespace);
        let create = async |i: usize| {
            let data = json!({ "k": format!("v{i}"), "text": "x".repeat(size) });
            let object = json!({ "metadata": { "name": name(i) }, "data": data });
            self.send(Method::POST, &collection, "application/json", &object).await;
        };
        self.runtime.block_on(futures::stream::iter(0..COUNT).for_each_concurrent(AT_ONCE, create));
    }

    /// Changes every object of a set in a way that `.data.k` does not see.
    pub(crate) fn touch(&self, namespace: &str) {
        let collection = collection(namespace);
        let touch = async |i: usize| {
            let patch = json!({ "metadata": { "annotations": { "touched": "yes" } } });
            self.send(
                Method::PATCH,
                &format!("{collection}/{}", name(i)),
                "application/merge-patch+json",
                &patch,
            )
            .await;
        };
        self.runtime.block_on(futures::stream::iter(0..COUNT).for_each_concurrent(AT_ONCE, touch));
    }

    /// Changes the value that `.data.k` selects in the last object of a set.
    pub(crate) fn change_last(&self, namespace: &str) {
        let object = format!("{}/{}", collection(namespace), name(COUNT - 1));
        let patch = json!({ "data": { "k": "changed" } });
        self.runtime.block_on(self.send(Method::PATCH, &object, "application/merge-patch+json", &patch));
    }

    /// Makes one small object; how long the request took.
    pub(crate) fn post(&self, namespace: &str, i: usize) -> Duration {
        let object = json!({ "metadata": { "name": name(i) }, "data": { "k": "v" } });
        let started = Instant::now();
        self.runtime.block_on(self.send(Method::POST, &collection(namespace), "application/json", &object));
        started.elapsed()
    }

    /// Makes one small object with a label `shard`.
    pub(crate) fn post_labelled(&self, namespace: &str, i: usize, shard: &str) {
        let object = json!({ "metadata": { "name": name(i), "labels": { "shard": shard } }, "data": { "k": "first" } });
        self.runtime.block_on(self.send(Method::POST, &collection(namespace), "application/json", &object));
    }

    /// Changes the value that `.data.k` selects in an object; false when the API server does not acknowledge the change.
    pub(crate) fn try_change(&self, namespace: &str, i: usize, value: &str) -> bool {
        let patch = json!({ "data": { "k": value } }).to_string().into_bytes();
        let request = Request::patch(format!("{}/{}", collection(namespace), name(i)))
            .header("Content-Type", "application/merge-patch+json")
            .body(patch)
            .unwrap();
        self.runtime.block_on(self.client.request::<Value>(request)).is_ok()
    }

    /// Reads a whole set with one request and throws it away; the time, and the bytes.
    pub(crate) fn get(&self, namespace: &str) -> (Duration, usize) {
        let started = Instant::now();
        let bytes = self.runtime.block_on(async {
            let request = Request::get(collection(namespace)).body(Vec::new()).unwrap();
            let mut body = pin!(self.client.request_stream(request).await.unwrap());
            let mut bytes = 0;
            loop {
                let read = body.fill_buf().await.unwrap().len();
                if read == 0 {
                    return bytes;
                }
                body.consume_unpin(read);
                bytes += read;
            }
        });
        (started.elapsed(), bytes)
    }

    /// How often the API server has answered a list of `ConfigMaps`; each page counts.
    pub(crate) fn lists(&self) -> f64 {
        self.of_lists("apiserver_request_total{")
    }

    /// Bytes of all lists of `ConfigMaps` that the API server has answered.
    pub(crate) fn listed_bytes(&self) -> f64 {
        self.of_lists("apiserver_response_sizes_sum{")
    }

    fn of_lists(&self, metric: &str) -> f64 {
        let request = Request::get("/metrics").body(Vec::new()).unwrap();
        let text = self.runtime.block_on(self.client.request_text(request)).unwrap();
        let lists = text.lines().filter(|line| {
            line.starts_with(metric)
                && line.contains(r#"resource="configmaps""#)
                && line.contains(r#"verb="LIST""#)
        });
        lists.map(|line| line.rsplit(' ').next().unwrap().parse::<f64>().unwrap()).sum()
    }
}

fn name(i: usize) -> String {
    format!("c{i:05}")
}
