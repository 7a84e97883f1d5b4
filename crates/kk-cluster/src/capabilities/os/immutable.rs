//! The name of a node, which is part of its credentials and of its object in the API.

use kk_engine::{Question, question};

use crate::{
    base::{findings::Setting, host_layout::KUBELET_CONF},
    model::inputs::Inputs,
};

/// The name in the arguments of the kubelet; empty without one.
pub(crate) const NODE_NAME: Question<String> = Question::new(
    "node_name",
    r"sed -nE 's/.*--hostname-override=([^ ]+).*/\1/p' /etc/systemd/system/kubelet.service.d/10-kubeadm.conf 2>/dev/null || :",
    question::text,
);

/// Settings of every node that has joined.
pub(super) fn settings(inputs: &Inputs) -> Vec<Setting> {
    let joined = inputs.nodes().into_iter().filter(|(_, facts)| facts.files.contains_key(KUBELET_CONF));
    let setting = |(host, facts): (&kk_config::Host, &kk_engine::Facts)| Setting {
        host: Some(host.name.clone()),
        what: "name in the cluster is",
        field: "its name in spec.hosts",
        there: facts.answer(&NODE_NAME).answered().filter(|name| !name.is_empty()),
        wanted: host.name.clone(),
    };
    joined.map(setting).collect()
}
