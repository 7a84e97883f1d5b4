//! Start the kubelet, and wait until it works.

use std::time::Duration;

use kk_config::{Host, Role};
use kk_engine::{
    Action, HostWork, Task,
    actions::{Command, Unit},
};

use super::{pods_known, rollout, static_pods};
use crate::{
    base::{error::BuildError, rollout::Rollout, shell::script, slots},
    capabilities::{control_plane, kubelet, runtime},
    model::inputs::Inputs,
};

/// On nodes that have joined: starts a stopped kubelet, and restarts a kubelet if its settings, unit or binary change in this run
/// or are newer than its process. The kubelet works when it answers and has since reported on its node. If it ends repeatedly,
/// the task fails at once with the kubelet's last error. A node that was Ready must become Ready again. A node that was not Ready
/// may lack something that starts after its kubelet, above all a network.
pub(crate) fn task(inputs: &Inputs, rollout: &Rollout) -> Result<Task, BuildError> {
    let mut task =
        Task::new("start_kubelet", "Start kubelet").timeout(static_pods::PATIENCE + Duration::from_mins(4));
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
        // Another task started the kubelet with its new credentials.
        let renewed = control_plane::renews(inputs, host, facts, "kubelet.conf");
        let starts = unit.check(facts).is_needed() || renewed;
        let mut actions: Vec<Box<dyn Action>> = Vec::new();
        if kubelet::server_certificate::due(facts).is_some() {
            actions.push(Box::new(kubelet::server_certificate::remove()));
        }
        actions.push(Box::new(unit));
        actions.push(Box::new(works(inputs, host).when(move |_| starts)));
        if host.has_role(&Role::ControlPlane) {
            actions.push(Box::new(static_pods::wait(host).done_by(move |_| !starts)));
        }
        if inputs.is_registered(host) && (inputs.is_outdated(host) || !runtime::is_active(facts)) {
            actions.push(Box::new(pods_known::wait(host)));
        }
        let mut work = HostWork::new(actions)
            .needs(slots::joined_slot(&host.name))
            .needs(slots::kube_programs_slot(&host.name))
            .needs(slots::node_tools_slot(&host.name))
            .provides(slots::kubelet_works_slot(&host.name));
        if changes {
            work = rollout.after_first(host, work);
        }
        task = task.on(&host.name, rollout.shows_first(host, work));
    }
    Ok(rollout.in_turns(task))
}

/// Waits until the kubelet of a node works.
pub(crate) fn works(inputs: &Inputs, host: &Host) -> Command {
    reports(inputs, host, inputs.is_ready(host))
}

/// Waits until the running kubelet has reported that its node is Ready.
pub(crate) fn is_ready_again(inputs: &Inputs, host: &Host) -> Command {
    reports(inputs, host, true)
}

fn reports(inputs: &Inputs, host: &Host, is_ready: bool) -> Command {
    let healthz = healthz(inputs).unwrap_or_default();
    let ready = if is_ready { "yes" } else { "" };
    let variables = [("node", host.name.as_str()), ("healthz", healthz.as_str()), ("ready", ready)];
    Command::new(
        if is_ready { "wait until the kubelet works and the node is Ready" } else { "wait until the kubelet works" },
        script(&variables, include_str!("kubelet_works.sh")),
    )
    .only_waits()
    .hint(
        "does not work",
        "correct spec.kubernetes (kubeletConfiguration, kubeletArgs) and run again; nodes after this one were not changed",
    )
    .hint("", "see \"journalctl -u kubelet\" on the host")
}

/// The URL of the kubelet's health check. `None` if the file turns it off.
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

#[cfg(test)]
mod tests {
    use crate::{
        base::{cluster_state::API, shell::script},
        testing::{self, KUBERNETES},
    };

    /// Runs the script against a kubelet that answers and started 1000 s ago, and an API with this report on its node.
    fn works(ready: &str, status: &str, seconds_ago: u32) -> bool {
        let directory = tempfile::tempdir().unwrap();
        let program = |name: &str, text: &str| testing::program(directory.path(), name, text);
        let report =
            format!("echo \"{status} $(date -u -d '-{seconds_ago} seconds' +%Y-%m-%dT%H:%M:%SZ) because\"");
        program("kubectl", &format!("case \"$*\" in *healthz*) echo ok ;; *) {report} ;; esac"));
        // systemd has restarted the kubelet twice at the second query, so the script gives up after one check.
        program(
            "systemctl",
            "case \"$*\" in *NRestarts*) echo NRestarts=$([ -e looked ] && echo 2 || echo 0); touch looked ;; *) echo X=1000000000 ;; esac",
        );
        program("journalctl", "exit 0");
        program("sleep", "exit 0");
        let variables = [("node", "node1"), ("healthz", "http://127.0.0.1:10248"), ("ready", ready)];
        let library = "kk_uptime() { echo 2000; }\nkk_fail() { echo \"$*\" >&2; exit 1; }";
        let text = script(&variables, include_str!("kubelet_works.sh"));
        let status = testing::run_script(directory.path(), &format!("{library}\n{text}"));
        status.status.success()
    }

    #[test]
    fn a_node_that_was_ready_must_report_so_since_the_restart() {
        for (status, seconds_ago, enough) in [("True", 1, true), ("False", 1, false), ("True", 6000, false)] {
            assert_eq!(works("yes", status, seconds_ago), enough, "{status} {seconds_ago}");
        }
    }

    #[test]
    fn a_node_that_was_not_ready_must_only_report() {
        for (status, seconds_ago, enough) in [("True", 1, true), ("False", 1, true), ("False", 6000, false)] {
            assert_eq!(works("", status, seconds_ago), enough, "{status} {seconds_ago}");
        }
    }

    #[tokio::test]
    async fn a_node_that_has_not_reported_since_its_kubelet_began_is_not_ready() {
        let spec = testing::sample("three-nodes.yaml");
        let first = spec.first_control_plane().clone();
        let directory = tempfile::tempdir().unwrap();
        let session = testing::session(spec.clone(), directory.path());
        for (began, ready) in [
            ("", true),
            ("2026-01-02T03:04:04Z", true),
            ("2026-01-02T03:04:05Z", true),
            ("2026-01-02T03:04:06Z", false),
        ] {
            let mut probed = testing::fresh(&spec);
            let facts = probed.facts.get_mut(&first.name).unwrap();
            facts.reply(&crate::base::questions::BEGAN, began);
            facts.reply(
                &API,
                format!("Node\t{}\tTrue\t{KUBERNETES}\t\t\t2026-01-02T03:04:05Z\nend\n", first.name),
            );
            let inputs = session.create_inputs(&probed).await.unwrap();
            assert_eq!(inputs.is_ready(&first), ready, "{began}");
        }
    }
}
