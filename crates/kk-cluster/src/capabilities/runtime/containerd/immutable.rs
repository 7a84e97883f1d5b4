//! The data directory of containerd: in another directory, containerd would not find the running pods.

use kk_config::Host;
use kk_engine::{Facts, Question, question};

use crate::{
    base::{findings::Setting, host_layout::KUBELET_CONF},
    model::{cluster::Cluster, inputs::Inputs},
};

/// The configuration of containerd.
pub(crate) const CONFIG: &str = "/etc/containerd/config.toml";

/// The directory in the configuration of containerd; empty if containerd is not configured.
pub(crate) const ROOT: Question<String> = Question::new(
    "containerd_root",
    r#"sed -nE 's/^root = "([^"]*)"$/\1/p' /etc/containerd/config.toml 2>/dev/null || :"#,
    question::text,
);

/// The data directory of the containerd that kk installed on a host, whatever the file specifies now.
pub(super) fn data_of(cluster: &Cluster, facts: &Facts) -> String {
    let of_host = facts.owns(CONFIG).then(|| facts.answer(&ROOT).answered()).flatten();
    let of_host = of_host.filter(|root| !root.is_empty());
    of_host.unwrap_or_else(|| cluster.spec.registry.containerd_data_dir.clone())
}

/// Settings of every node that has joined.
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
