//! Start the kubelet, and wait until it works.

use std::time::Duration;

use kk_config::Host;
use kk_engine::{
    Action, HostWork, Task,
    actions::{Command, Unit},
};

use super::rollout::{self, Rollout};
use crate::{BuildError, capabilities::kubelet, inputs::Inputs, shell::script, slots};

/// On nodes that have joined: starts a stopped kubelet, restarts one whose settings, unit or program change in this run, or
/// are newer than it. It works when it answers and has reported its node as Ready since; a kubelet that ends again and
/// again is given up at once, with its last error.
pub(super) fn task(inputs: &Inputs, rollout: &Rollout) -> Result<Task, BuildError> {
    let mut task = Task::new("start_kubelet", "Start kubelet").timeout(Duration::from_mins(4));
    for (host, facts) in inputs.nodes() {
        if !inputs.has_joined(host) {
            continue;
        }
        // A kubelet registers its node when it starts.
        let lost = inputs.state.answered && !inputs.is_registered(host);
        let changes = rollout::changes(inputs, host, facts)?;
        let unit = Unit::running("kubelet.service")
            .force_restart(lost || changes)
            .restart_after(kubelet::RESTARTS_AFTER);
        let starts = unit.check(facts).is_needed();
        let mut work =
            HostWork::new(vec![Box::new(unit), Box::new(works(inputs, host).when(move |_| starts))])
                .needs(slots::joined_slot(&host.name))
                .needs(slots::kube_programs_slot(&host.name))
                .needs(slots::node_tools_slot(&host.name));
        if changes {
            work = rollout.after_first(host, work);
        }
        if rollout.is_first(host) {
            work = work.provides(slots::first_kubelet_slot());
        }
        task = task.on(&host.name, work);
    }
    Ok(rollout.in_turns(task))
}

/// Waits until the kubelet of a node works.
fn works(inputs: &Inputs, host: &Host) -> Command {
    let healthz = healthz(inputs).unwrap_or_default();
    let variables = [("node", host.name.as_str()), ("healthz", healthz.as_str())];
    Command::new(
        "wait until the kubelet works and the node is Ready",
        script(&variables, include_str!("kubelet_works.sh")),
    )
    .only_waits()
    .hint(
        "does not work",
        "correct spec.kubernetes (kubeletConfiguration, kubeletArgs) and run again; nodes after this one were not changed",
    )
    .hint("", "see \"journalctl -u kubelet\" on the host")
}

/// Where the kubelet says that it is well. `None` when the file turns that off.
fn healthz(inputs: &Inputs) -> Option<String> {
    let own = &inputs.spec.kubernetes.kubelet_configuration;
    let port = own.get("healthzPort").and_then(serde_json::Value::as_u64).unwrap_or(10248);
    let address = own.get("healthzBindAddress").and_then(serde_json::Value::as_str).unwrap_or("127.0.0.1");
    let address = match address {
        "0.0.0.0" => "127.0.0.1".to_owned(),
        "::" => "[::1]".to_owned(),
        v6 if v6.contains(':') => format!("[{v6}]"),
        v4 => v4.to_owned(),
    };
    (port != 0).then(|| format!("http://{address}:{port}"))
}
