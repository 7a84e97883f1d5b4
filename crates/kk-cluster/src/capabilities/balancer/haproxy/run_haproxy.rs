//! Run haproxy on workers.

use kk_artifact::Component;
use kk_config::{ControlPlaneEndpoint, Host};
use kk_engine::{
    Action, Facts, Task,
    actions::{Command, File, any_needed},
};
use serde_json::json;

use super::{
    super::{
        answers, has_answered,
        in_turns::{Work, in_turns},
    },
    CONFIGURATION, DIRECTORY, HEALTH_PORT, LOAD, LOADED, MANIFEST, is_installed, runs_on,
};
use crate::{
    base::{error::BuildError, host_layout::CLUSTER_CA, shell::script},
    model::inputs::Inputs,
};

/// Runs after a worker has joined. The configuration names the control planes of the file, so commands that change only other
/// hosts rewrite it, too: a running haproxy reloads it and keeps its port open. One worker shows that the changes work before the
/// others get them.
pub(super) fn task(inputs: &Inputs) -> Result<Task, BuildError> {
    let (configuration, manifest) = (configuration(inputs)?, manifest(inputs)?);
    let mut works = Vec::new();
    for (host, facts) in inputs.answered().into_iter().filter(|(host, _)| runs_on(host)) {
        let takes_part = inputs.scope.contains(host);
        if !takes_part && !is_installed(facts) {
            continue;
        }
        let mut actions: Vec<Box<dyn Action>> =
            vec![Box::new(File::text(CONFIGURATION, configuration.as_str()))];
        if takes_part {
            actions.push(Box::new(File::text(MANIFEST, manifest.as_str()).mode(0o600)));
        }
        actions.push(Box::new(load(host, any_needed(&actions[..1], facts))));
        let changes = any_needed(&actions, facts);
        let works_already = !changes && (has_answered(facts) || !takes_part);
        let wait = answers(inputs).done_by(move |_| works_already).hint(
            "",
            "see \"crictl ps -a --name haproxy\", \"crictl logs\" and \"journalctl -u kubelet\" on the host, and \
             whether it reaches port 6443 of the control planes",
        );
        actions.push(Box::new(wait));
        let runs = is_installed(facts) && inputs.has_joined(host);
        works.push(Work { host, runs, changes, actions });
    }
    let task = Task::new("run_haproxy", "Run haproxy on workers");
    Ok(in_turns(inputs, "haproxy", task, works))
}

/// Makes haproxy use its files. The note of the loaded files is written last, so a killed run is detected.
fn load(host: &Host, is_rewritten: bool) -> Command {
    let text = format!("{LOAD}{}", script(&[("node", &host.name)], "load_haproxy \"$node\"\n"));
    Command::new("load the configuration of haproxy", text)
        .when(move |facts: &Facts| is_rewritten || facts.answer(&LOADED).answered() != Some(true))
        .hint("", "haproxy keeps its previous configuration; see \"crictl logs\" on the host")
}

fn configuration(inputs: &Inputs) -> Result<String, BuildError> {
    let server = |host: &&Host| json!({"name": host.name, "address": host.internal_address});
    let values = json!({
        "port": ControlPlaneEndpoint::API_SERVER_PORT,
        "health_port": HEALTH_PORT,
        "ca": CLUSTER_CA,
        "servers": inputs.spec.control_planes().iter().map(server).collect::<Vec<_>>(),
    });
    Ok(inputs.templates.render("balancer/haproxy.cfg", &values)?)
}

fn manifest(inputs: &Inputs) -> Result<String, BuildError> {
    let values = json!({
        "image": inputs.images.of(Component::Haproxy),
        "directory": DIRECTORY,
        "ca_directory": "/etc/kubernetes/pki",
        "health_port": HEALTH_PORT,
    });
    Ok(inputs.templates.render("balancer/haproxy.yaml", &values)?)
}
