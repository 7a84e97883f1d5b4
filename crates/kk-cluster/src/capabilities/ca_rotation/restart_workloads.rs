//! Restart workloads, so that their pods know the new CA.

use std::{sync::Arc, time::Duration};

use kk_engine::{Failure, HostWork, Slots, Task, actions::Command};

use super::{Authorities, Restarts};
use crate::{host_layout::KUBECTL, inputs::Inputs, shell::script, slots};

/// Before any API server has a certificate of the new CA: programs read the CA at their start.
pub(super) fn task(inputs: &Inputs, authorities: &Arc<Authorities>, restarts: Restarts) -> Task {
    let own = || {
        let workloads = inputs.requirements.workloads();
        let name = |path: &str| path.split_once('/').map_or(path, |(_, name)| name).to_owned();
        let names = workloads.iter().map(|one| format!("{}/{}", one.namespace, name(one.path)));
        // It comes with the cluster, too, and is waited for elsewhere.
        names.chain(["kubesphere-system/ks-installer".to_owned()]).collect::<Vec<_>>().join(" ")
    };
    let only = if restarts == Restarts::All { String::new() } else { own() };
    let sum = authorities.cluster.ca_sum();
    let variables = [("value", sum.get(..16).unwrap_or(&sum)), ("only", &only)];
    let restart = Command::new(
        if restarts == Restarts::All {
            "restart all workloads that may ask the API"
        } else {
            "restart the workloads of kk"
        },
        script(&variables, &[KUBECTL, include_str!("restart_workloads.sh")].concat()),
    )
    .hint("does not become available", "see kubectl describe of its pods; then run again")
    .output(Arc::new(|printed: &str, slots: &Slots| {
        let lines: Vec<&str> = printed.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
        if !lines.is_empty() {
            slots.output("workloads", lines.join("; "));
        }
        Ok::<(), Failure>(())
    }));
    let mut work = HostWork::new(vec![Box::new(restart)])
        .needs(slots::ca_published_slot())
        .provides(slots::workloads_restarted_slot());
    for (host, _) in inputs.nodes().into_iter().filter(|(host, _)| super::is_worker(host)) {
        work = work.needs(slots::kubelet_works_slot(&host.name));
    }
    Task::new("restart_workloads", "Restart workloads")
        .timeout(Duration::from_mins(30))
        .on(&inputs.api_host.name, work)
}
