//! Restart kube-proxy on nodes where Services do not answer.
//!
//! It writes all rules when it starts. One that runs looks for rules that others have removed only now and then.

use kk_config::Host;
use kk_connector::quote;
use kk_engine::{
    HostWork, Task,
    actions::{Command, WaitUntil},
};

use super::services;
use crate::{host_layout::KUBECTL, inputs::Inputs, shell::ASK_URL, slots};

/// The nodes on which it starts again, each with what its API's Service says.
pub(super) fn broken<'a>(inputs: &Inputs<'a>) -> Vec<(&'a Host, String)> {
    let why = |(host, facts)| Some((host, services::broken(inputs, host, facts)?));
    inputs.nodes().into_iter().filter_map(why).collect()
}

/// At the API, by deleting pods; then on those nodes, until the Service answers.
pub(super) fn tasks(inputs: &Inputs) -> Vec<Task> {
    let broken = broken(inputs);
    let mut restart = Task::new("restart_kube_proxy", "Restart kube-proxy where Services do not answer");
    let mut wait = Task::new("wait_for_services", "Wait until Services answer");
    if broken.is_empty() {
        return vec![restart, wait];
    }
    let names: Vec<&str> = broken.iter().map(|(host, _)| host.name.as_str()).collect();
    let script: String = std::iter::once(KUBECTL.to_owned())
        .chain(names.iter().map(|node| {
            let node = quote(&format!("spec.nodeName={node}")).into_owned();
            format!("kubectl -n kube-system delete pods -l k8s-app=kube-proxy --field-selector {node} --timeout=90s >/dev/null\n")
        }))
        .collect();
    let delete = Command::new(format!("restart kube-proxy on {}", names.join(", ")), script);
    let work = HostWork::new(vec![Box::new(delete)])
        .needs(slots::initialised_slot())
        .needs(slots::nodes_registered_slot())
        .needs(slots::node_tools_slot(&inputs.api_host.name))
        .provides(slots::kube_proxy_restarted_slot());
    restart = restart.on(&inputs.api_host.name, work);
    for (host, _) in broken {
        let url = services::api(inputs.spec);
        let answers =
            WaitUntil::new("the Service of the API answers", format!("{ASK_URL}ask {}", quote(&url)))
                .hint("", "see \"kubectl -n kube-system logs -l k8s-app=kube-proxy\"");
        let work = HostWork::new(vec![Box::new(answers)])
            .needs(slots::kube_proxy_restarted_slot())
            .provides(slots::services_back_slot(&host.name));
        wait = wait.on(&host.name, work);
    }
    vec![restart, wait]
}
