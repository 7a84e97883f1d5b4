//! Provides data about the nodes for templates: their number and their container runtime.

use std::sync::{Arc, Mutex, PoisonError};

use serde_json::Value;

/// Data of the last observation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Seen {
    /// Number of nodes, up to [`Nodes::MANY`].
    pub(super) count: usize,
    /// `containerd`, `crio` or `docker`. They write logs of containers in two formats.
    pub(super) runtime: &'static str,
}

/// The nodes of a cluster. The default is one node with containerd.
#[derive(Clone, Debug)]
pub struct Nodes(Arc<Mutex<Seen>>);

impl Nodes {
    /// Larger numbers make no difference. Some templates set fewer replicas for fewer nodes.
    pub const MANY: usize = 3;

    /// Records the current nodes. The runtime is the runtime of the first node.
    pub fn see(&self, nodes: &[Value]) {
        let first =
            nodes.first().and_then(|node| node["status"]["nodeInfo"]["containerRuntimeVersion"].as_str());
        let runtime = match first.and_then(|version| version.split_once("://")) {
            Some(("docker", _)) => "docker",
            Some(("cri-o", _)) => "crio",
            _ => "containerd",
        };
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) =
            Seen { count: nodes.len().min(Self::MANY), runtime };
    }

    pub(super) fn seen(&self) -> Seen {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Default for Nodes {
    fn default() -> Self {
        Self(Arc::new(Mutex::new(Seen { count: 1, runtime: "containerd" })))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_runtime_is_that_of_the_first_node() {
        for (version, expected) in [
            ("containerd://2.4.2", "containerd"),
            ("cri-o://1.36.0", "crio"),
            ("docker://29.0.0", "docker"),
            ("", "containerd"),
        ] {
            let node = |version: &str| json!({"status": {"nodeInfo": {"containerRuntimeVersion": version}}});
            let nodes = Nodes::default();
            nodes.see(&[node(version), node("rkt://1")]);
            assert_eq!(nodes.seen(), Seen { count: 2, runtime: expected }, "{version}");
            nodes.see(&vec![node(version); 7]);
            assert_eq!(nodes.seen().count, Nodes::MANY, "{version}");
        }
    }
}
