//! Metrics of the requests to the API server, with the names and labels that client-go gives them.

use std::sync::Arc;
use std::time::Duration;

use super::{Labels, OperatorMetrics};

/// Buckets of request times in seconds.
const REQUEST_SECONDS: [f64; 16] =
    [0.0, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0];

/// Counts the requests of one client. Cheap to clone.
#[derive(Clone, Debug)]
pub struct ClientMetrics {
    metrics: OperatorMetrics,
    component: &'static str,
    /// Address of the API server, like `https://10.0.0.1:6443`.
    address: Arc<str>,
}

impl OperatorMetrics {
    /// Metrics of the client that watches and answers.
    pub fn of_client(&self, address: &str) -> ClientMetrics {
        ClientMetrics { metrics: self.clone(), component: "main", address: address.into() }
    }

    /// Metrics of the client that changes objects. The original gives them a prefix that cannot be changed.
    pub fn of_object_patcher(&self, address: &str) -> ClientMetrics {
        let metrics = Self { registry: self.registry.clone(), prefix: "object_patcher_".into() };
        ClientMetrics { metrics, component: "object_patcher", address: address.into() }
    }
}

impl ClientMetrics {
    /// A request had to wait for its turn.
    pub fn waited(&self, verb: &str, path: &str, time: Duration) {
        let name = "kubernetes_client_rate_limiter_latency_seconds";
        let help = "Time that requests waited for their turn.";
        self.metrics.observe(name, self.place(verb, path), time, &REQUEST_SECONDS, help);
    }

    /// The first bytes of an answer arrived after `time`; without a `code` there is no answer.
    pub fn answered(&self, verb: &str, path: &str, code: Option<u16>, time: Duration) {
        let mut labels = self.place(verb, path);
        labels.insert("component".to_owned(), self.component.to_owned());
        let name = "kubernetes_client_request_latency_seconds";
        self.metrics.observe(name, labels, time, &REQUEST_SECONDS, "Time to the answer of a request.");
        let code = code.map_or_else(|| "<error>".to_owned(), |code| code.to_string());
        let host = self.address.split_once("://").map_or(&*self.address, |(_, host)| host);
        let labels = [("code", &*code), ("component", self.component), ("host", host), ("method", verb)];
        let labels = labels.map(|(key, value)| (key.to_owned(), value.to_owned())).into();
        self.metrics.add("kubernetes_client_request_result_total", labels, 1.0, "Requests by their result.");
    }

    fn place(&self, verb: &str, path: &str) -> Labels {
        let url = format!("{}{}", self.address, template(path));
        [("verb", verb.to_owned()), ("url", url)].map(|(key, value)| (key.to_owned(), value)).into()
    }
}

/// The path with `{namespace}` and `{name}` in place of the actual names: otherwise, each object would be a series.
fn template(path: &str) -> String {
    let mut parts: Vec<&str> = path.split('/').collect();
    let resource = match parts.get(1) {
        Some(&"api") => 3,
        Some(&"apis") => 4,
        _ => return path.to_owned(),
    };
    let in_namespace = parts.get(resource) == Some(&"namespaces") && parts.len() > resource + 2;
    let name = if in_namespace {
        parts[resource + 1] = "{namespace}";
        resource + 3
    } else {
        resource + 1
    };
    if let Some(part) = parts.get_mut(name) {
        *part = "{name}";
    }
    parts.join("/")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_left_out() {
        for (path, expected) in [
            ("/version", "/version"),
            ("/api", "/api"),
            ("/apis/apps/v1", "/apis/apps/v1"),
            ("/api/v1/pods", "/api/v1/pods"),
            ("/api/v1/namespaces", "/api/v1/namespaces"),
            ("/api/v1/namespaces/a", "/api/v1/namespaces/{name}"),
            ("/api/v1/nodes/n/status", "/api/v1/nodes/{name}/status"),
            ("/api/v1/namespaces/a/pods", "/api/v1/namespaces/{namespace}/pods"),
            (
                "/apis/apps/v1/namespaces/a/deployments/d/scale",
                "/apis/apps/v1/namespaces/{namespace}/deployments/{name}/scale",
            ),
        ] {
            assert_eq!(template(path), expected, "{path}");
        }
    }

    #[test]
    fn the_object_patcher_has_names_of_its_own() {
        let metrics = OperatorMetrics::new("x_");
        metrics.of_object_patcher("https://h").answered("PUT", "/api/v1/pods", None, Duration::ZERO);
        let expected = r#"object_patcher_kubernetes_client_request_result_total{code="<error>",component="object_patcher",host="h",method="PUT"} 1"#;
        assert!(metrics.text().contains(expected), "{}", metrics.text());
    }
}
