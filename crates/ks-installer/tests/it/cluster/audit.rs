//! Reads the requests to the API server from its audit log.

use std::path::PathBuf;
use std::sync::OnceLock;

use serde_json::Value;
use tempfile::TempDir;

const POLICY: &str =
    "apiVersion: audit.k8s.io/v1\nkind: Policy\nomitStages: [RequestReceived]\nrules: [{level: Metadata}]\n";

fn dir() -> &'static TempDir {
    static DIR: OnceLock<TempDir> = OnceLock::new();
    DIR.get_or_init(|| TempDir::new().unwrap())
}

fn log() -> PathBuf {
    dir().path().join("audit.log")
}

/// Arguments for an API server that writes the log. It logs a request before it responds.
pub(crate) fn arguments() -> Vec<String> {
    let policy = dir().path().join("policy.yaml");
    std::fs::write(&policy, POLICY).unwrap();
    vec![format!("--audit-policy-file={}", policy.display()), format!("--audit-log-path={}", log().display())]
}

/// All previous requests of a user, such as `patch configmaps/a`.
pub(crate) fn requests(user: &str) -> Vec<String> {
    let text = std::fs::read_to_string(log()).unwrap();
    let events = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let mine = events.filter(|event| event["impersonatedUser"]["username"] == user);
    mine.map(|event| {
        let (object, verb) = (&event["objectRef"], event["verb"].as_str().unwrap_or_default());
        let text = |key: &str| object[key].as_str().unwrap_or_default();
        if object.is_null() {
            return format!("{verb} {}", event["requestURI"].as_str().unwrap_or_default());
        }
        format!("{verb} {}/{}", text("resource"), text("name"))
    })
    .collect()
}

/// The requests that write anything except the inventory.
pub(crate) fn writes(requests: &[String]) -> Vec<String> {
    let reads = ["get ", "list ", "watch "];
    let mut writes: Vec<String> = requests
        .iter()
        .filter(|request| {
            !reads.iter().any(|verb| request.starts_with(verb)) && !request.contains("/ks-installer-")
        })
        .cloned()
        .collect();
    writes.sort();
    writes
}
