//! The directory of containerd's data: with another one, the pods that run would be lost to it.

use kk_config::Host;
use kk_engine::{Facts, Question, question};

use crate::{findings::Setting, host_layout::KUBELET_CONF, inputs::Inputs};

/// The directory that containerd is configured with; empty where it is not configured.
pub(crate) const ROOT: Question<String> = Question::new(
    "containerd_root",
    r#"sed -nE 's/^root = "([^"]*)"$/\1/p' /etc/containerd/config.toml 2>/dev/null || :"#,
    question::text,
);

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
