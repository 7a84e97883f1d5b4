//! What templates ask about the nodes of the cluster: how many there are, and what runs their containers.

use std::sync::{Arc, Mutex, PoisonError};

use serde_json::Value;

/// What was seen of them last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Seen {
    /// Their number, up to [`Nodes::MANY`].
    pub(super) count: usize,
    /// `containerd`, `crio` or `docker`: they write logs of containers in two forms.
    pub(super) runtime: &'static str,
}

/// The nodes of a cluster. Until they are looked at: one, with containerd.
#[derive(Clone, Debug)]
pub struct Nodes(Arc<Mutex<Seen>>);

impl Nodes {
    /// From this number on it makes no difference: some templates make fewer replicas for fewer.
    pub const MANY: usize = 3;

    /// Notes what there is now. The runtime is that of the first node.
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
