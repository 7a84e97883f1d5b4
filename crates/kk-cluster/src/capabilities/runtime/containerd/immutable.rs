//! The directory of containerd's data: with another one, the pods that run would be lost to it.

use kk_config::Host;
use kk_engine::{Facts, Question, question};

use crate::{
    base::{findings::Setting, host_layout::KUBELET_CONF},
    model::{cluster::Cluster, inputs::Inputs},
};

/// What containerd is configured by.
pub(crate) const CONFIG: &str = "/etc/containerd/config.toml";

/// The directory that containerd is configured with; empty where it is not configured.
pub(crate) const ROOT: Question<String> = Question::new(
    "containerd_root",
    r#"sed -nE 's/^root = "([^"]*)"$/\1/p' /etc/containerd/config.toml 2>/dev/null || :"#,
    question::text,
);

/// Where the containerd that kk has installed on a host keeps its data, whatever the file says by now.
pub(super) fn data_of(cluster: &Cluster, facts: &Facts) -> String {
    let of_host = facts.owns(CONFIG).then(|| facts.answer(&ROOT).answered()).flatten();
    let of_host = of_host.filter(|root| !root.is_empty());
    of_host.unwrap_or_else(|| cluster.spec.registry.containerd_data_dir.clone())
}

/// On every node that has joined.
pub(super) fn settings(inputs: &Inputs) -> Vec<Setting> {
    let joined = inputs.nodes().into_iter().filter(|(_, facts)| facts.files.contains_key(KUBELET_CONF));
    let setting = |(host, facts): (&Host, &Facts)| Setting {
        host: Some(host.name.clone()),
        what: "containerd data is in",
        field: "spec.registry.containerdDataDir",
        there: facts.answer(&ROOT).answered().filter(|root| !root.is_empty()),
        wanted: inputs.spec.registry.containerd_data_dir.clone(),
    };
    joined.map(setting).collect()
}
