//! The cluster that all simulated hosts form: what its API would answer.

use std::{collections::BTreeMap, fmt::Write as _};

use serde_json::Value;

/// The label of control planes, and the key of their taint.
const CONTROL_PLANE: &str = "node-role.kubernetes.io/control-plane";

/// Nodes and workloads.
#[derive(Debug)]
pub(super) struct Cluster {
    version: String,
    /// Node → its labels.
    nodes: BTreeMap<String, BTreeMap<String, String>>,
    /// Network, proxy and DNS were applied: all nodes are ready.
    pub(super) applied: bool,
}

impl Cluster {
    /// No node yet; kubelets will have this version.
    pub(super) fn new(version: &str) -> Self {
        Self { version: version.to_owned(), nodes: BTreeMap::new(), applied: false }
    }

    /// A node registers.
    pub(super) fn add(&mut self, name: String, control_plane: bool) {
        let node = self.nodes.entry(name).or_default();
        if control_plane {
            node.insert(CONTROL_PLANE.into(), String::new());
        }
    }

    /// Sets labels, `key=value`.
    pub(super) fn label<'a>(&mut self, names: impl Iterator<Item = &'a String>, labels: &[&String]) {
        for name in names {
            let Some(node) = self.nodes.get_mut(name) else { continue };
            let pairs = labels.iter().filter_map(|label| label.split_once('='));
            node.extend(pairs.map(|(key, value)| (key.to_owned(), value.to_owned())));
        }
    }

    /// The line of an object: nobody edits it.
    pub(super) fn object(key: &str) -> String {
        format!("{key}\tsame\n")
    }

    /// The answer to kk's question about the state of the cluster, which names the objects that it wants to know of.
    pub(super) fn answer(&self, question: &str) -> String {
        let mut text = String::new();
        let objects = question.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        for object in objects.filter(|_| self.applied) {
            let word = |pointer| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
            // Of a verification: every run takes it away.
            if word("/metadata/name") == "kk-verify" {
                continue;
            }
            let key = format!(
                "{} {} {}/{}",
                word("/apiVersion"),
                word("/kind"),
                word("/metadata/namespace"),
                word("/metadata/name")
            );
            let _ = write!(text, "Object\t{}", Self::object(&key));
            if word("/kind") == "Pod" {
                let _ = writeln!(text, "Pod\tkube-system/{}\tTrue", word("/metadata/name"));
            }
        }
        let ready = if self.applied { "True" } else { "False" };
        for (name, labels) in &self.nodes {
            // kubeadm sets the label and the taint together.
            let taint =
                labels.get(CONTROL_PLANE).map(|_| format!("{CONTROL_PLANE}:NoSchedule")).unwrap_or_default();
            let labels = labels.iter().fold(String::new(), |all, (key, value)| all + key + "=" + value + " ");
            let _ = writeln!(text, "Node\t{name}\t{ready}\t{}\t{labels}\t{taint}", self.version);
        }
        if self.applied {
            let count = self.nodes.len();
            text += "Deployment\tkube-system/coredns\t2\t2\n";
            for name in ["kube-system/kube-proxy", "kube-flannel/kube-flannel-ds"] {
                let _ = writeln!(text, "DaemonSet\t{name}\t{count}\t{count}");
            }
        }
        for name in ["kube-system/kubeadm-config", "kube-system/kubelet-config", "kube-public/cluster-info"] {
            let _ = writeln!(text, "ConfigMap\t{name}\t");
        }
        text + "end\n"
    }
}
