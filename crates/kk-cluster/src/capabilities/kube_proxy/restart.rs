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
use crate::{
    base::{host_layout::KUBECTL, shell::ASK_URL, slots},
    model::inputs::Inputs,
};

/// The nodes on which it starts again, each with what its API's Service says.
pub(super) fn broken<'a>(inputs: &Inputs<'a>) -> Vec<(&'a Host, String)> {
    let why = |(host, facts)| Some((host, services::broken(inputs, host, facts)?));
    inputs.nodes().into_iter().filter_map(why).collect()
}

/// On one node, and when the Service answers there, on the others. The first node is chosen by the random token of the run, so a
/// node where a restart does not help does not keep the others from their restart in every run.
pub(super) fn tasks(inputs: &Inputs) -> Vec<Task> {
    let mut hosts: Vec<&Host> = broken(inputs).into_iter().map(|(host, _)| host).collect();
    if !hosts.is_empty() {
        let run: usize = inputs.token.id.bytes().map(usize::from).sum();
        let first = run % hosts.len();
        hosts.rotate_left(first);
    }
    let (first, others) = hosts.split_at(hosts.len().min(1));
    let mut tasks = round(inputs, ["restart_kube_proxy", "wait_for_services"], first, None);
    tasks.extend(round(
        inputs,
        ["restart_other_kube_proxies", "wait_for_other_services"],
        others,
        first.first().copied(),
    ));
    tasks
}

/// At the API, by deleting pods; then on those nodes, until the Service answers.
fn round(inputs: &Inputs, names: [&'static str; 2], hosts: &[&Host], after: Option<&Host>) -> Vec<Task> {
    let mut restart = Task::new(names[0], "Restart kube-proxy where Services do not answer");
    let mut wait = Task::new(names[1], "Wait until Services answer");
    let [first, ..] = hosts else { return vec![restart, wait] };
    let delete = |host: &&Host| {
        let node = quote(&format!("spec.nodeName={}", host.name)).into_owned();
        format!(
            "kubectl -n kube-system delete pods -l k8s-app=kube-proxy --field-selector {node} --wait=false >/dev/null\n"
        )
    };
    let script = KUBECTL.to_owned() + &hosts.iter().map(delete).collect::<Vec<_>>().concat();
    let more = if hosts.len() > 1 { format!(" and {} more nodes", hosts.len() - 1) } else { String::new() };
    let delete = Command::new(format!("restart kube-proxy on {}{more}", first.name), script);
    let mut work = HostWork::new(vec![Box::new(delete)])
        .needs(slots::initialised_slot())
        .needs(slots::nodes_registered_slot())
        .needs(slots::node_tools_slot(&inputs.api_host.name));
    if let Some(host) = after {
        work = work.needs(slots::services_back_slot(&host.name));
    }
    for host in hosts {
        work = work.provides(slots::kube_proxy_restarted_slot(&host.name));
    }
    restart = restart.on(&inputs.api_host.name, work);
    let url = services::api(inputs.spec);
    for host in hosts {
        let answers =
            WaitUntil::new("the Service of the API answers", format!("{ASK_URL}ask {}", quote(&url)))
                .hint("", "see \"kubectl -n kube-system logs -l k8s-app=kube-proxy\"");
        let work = HostWork::new(vec![Box::new(answers)])
            .needs(slots::kube_proxy_restarted_slot(&host.name))
            .provides(slots::services_back_slot(&host.name));
        wait = wait.on(&host.name, work);
    }
    vec![restart, wait]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        capabilities::kube_proxy::services::SERVICES,
        commands::add_nodes::tests::{ANSWERED, joined, probed, spec},
        testing::{self, KUBERNETES},
    };

    #[tokio::test]
    async fn one_node_shows_that_a_restart_helps_before_the_others_get_it() {
        let directory = tempfile::tempdir().unwrap();
        let session = testing::session(spec(), directory.path());
        let names = ["n1", "n2", "n4"];
        let nodes = names.map(|name| format!("Node\t{name}\tTrue\t{KUBERNETES}\t\t\t\n")).concat();
        let proxy = "DaemonSet\tkube-system/kube-proxy\t3\t3\n";
        let mut probed = probed(&session, Some(&(nodes + proxy + ANSWERED))).await;
        for name in names {
            let facts = probed.facts.get_mut(name).unwrap();
            joined(facts);
            facts.reply(&SERVICES, "dns\tok\napi\trefused\n");
        }
        let mut inputs = session.create_inputs(&probed).await.unwrap();
        let mut begun_with = Vec::new();
        for run in ["a", "b", "c"] {
            inputs.token.id = run.to_owned();
            let tasks = tasks(&inputs);
            let hosts = |at: usize| tasks[at].hosts.keys().cloned().collect::<Vec<_>>();
            let [first] = &hosts(1)[..] else { panic!("{:?}", hosts(1)) };
            assert_eq!(hosts(3), names.iter().filter(|name| *name != first).copied().collect::<Vec<_>>());
            assert!(tasks[2].hosts["n1"].needs.contains(&slots::services_back_slot(first)));
            begun_with.push(first.clone());
        }
        begun_with.sort();
        assert_eq!(begun_with, names, "the token of the run decides");
    }
}
