//! Set labels and taints.

use std::{collections::BTreeMap, fmt::Write as _};

use kk_config::{Host, Role};
use kk_connector::quote;
use kk_engine::{HostWork, Task, actions::Command};

use crate::{
    base::{cluster_state::Node, host_layout::KUBECTL, slots},
    model::{actions::ForJoined, inputs::Inputs},
};

/// The label that shows workers in `kubectl get nodes`.
const WORKER: &str = "node-role.kubernetes.io/worker";
/// The labels that kubeadm sets on a control plane (Kubernetes, `cmd/kubeadm/app/constants`); the first is also the key of its
/// taint.
const CONTROL_PLANE: [&str; 2] =
    ["node-role.kubernetes.io/control-plane", "node.kubernetes.io/exclude-from-external-load-balancers"];

/// One script for all nodes.
pub(super) fn task(inputs: &Inputs) -> Task {
    let task = Task::new("set_labels", "Set labels and taints");
    let lacking = lacking(inputs);
    let first = &inputs.api_host.name;
    if lacking.is_empty() {
        return task.on(first, HostWork::default().provides(slots::labels_set_slot()));
    }
    let set = ForJoined::new(inputs, move |nodes| {
        Command::new("set labels and taints", script(&lacking, nodes)).transient_on("connection refused")
    });
    let mut work = HostWork::new(vec![Box::new(set)])
        .needs(slots::initialised_slot())
        .needs(slots::node_tools_slot(first))
        .provides(slots::labels_set_slot());
    for (host, _) in inputs.nodes() {
        work = work.after(slots::joined_slot(&host.name));
    }
    task.retry(kk_engine::Retry::times(3)).on(first, work)
}

/// Missing labels and taints: the verb of kubectl and quoted arguments, and the names of the nodes.
type Lacking = BTreeMap<(&'static str, Vec<String>), Vec<String>>;

fn lacking(inputs: &Inputs) -> Lacking {
    let unknown = Node::default();
    let mut same = Lacking::new();
    for (host, _) in inputs.nodes() {
        let node = inputs.state.nodes.get(&host.name).unwrap_or(&unknown);
        let (mut labels, mut taints) = (labels(host, node), taints(host, node));
        if is_control_plane(inputs, host) {
            if !node.labels.contains_key(CONTROL_PLANE[0]) {
                labels.extend(CONTROL_PLANE.map(|label| format!("{label}=")));
            }
            let taint = format!("{}:NoSchedule", CONTROL_PLANE[0]);
            if !host.has_role(&Role::Worker) && !node.taints.contains(&taint) {
                taints.push(taint);
            }
        }
        for lacking in [("label", labels), ("taint", taints)] {
            if !lacking.1.is_empty() {
                same.entry(lacking).or_default().push(host.name.clone());
            }
        }
    }
    same
}

/// Whether kubeadm has marked the node as a control plane, or would have: a join may be killed before its last step.
fn is_control_plane(inputs: &Inputs, host: &Host) -> bool {
    host.has_role(&Role::ControlPlane)
        && inputs.state.answered
        && inputs.is_initialised()
        && inputs.has_joined(host)
}

/// One command for all nodes that lack the same labels or taints: each start of `kubectl` takes longer than its work.
fn script(lacking: &Lacking, nodes: &[&Host]) -> String {
    lacking.iter().fold(KUBECTL.to_owned(), |mut text, ((verb, words), lack)| {
        let names: Vec<_> =
            nodes.iter().filter(|host| lack.contains(&host.name)).map(|host| quote(&host.name)).collect();
        if !names.is_empty() {
            let _ = writeln!(
                text,
                "kubectl {verb} --overwrite node {} {} >/dev/null",
                names.join(" "),
                words.join(" ")
            );
        }
        text
    })
}

/// The missing labels of a node, each as a quoted argument.
fn labels(host: &Host, node: &Node) -> Vec<String> {
    let worker = host.has_role(&Role::Worker).then(|| (WORKER.to_owned(), String::new()));
    host.labels
        .clone()
        .into_iter()
        .chain(worker)
        .filter(|(key, value)| node.labels.get(key) != Some(value))
        .map(|(key, value)| quote(&format!("{key}={value}")).into_owned())
        .collect()
}

/// The missing taints of a node, each as a quoted argument.
fn taints(host: &Host, node: &Node) -> Vec<String> {
    host.taints
        .iter()
        .map(ToString::to_string)
        .filter(|taint| !node.taints.contains(taint))
        .map(|taint| quote(&taint).into_owned())
        .collect()
}

#[cfg(test)]
mod tests {
    use kk_engine::{Apply, FileFact, Slots};

    use super::*;
    use crate::{
        base::cluster_state::API,
        capabilities::nodes::wait_for_nodes,
        testing::{self, KUBERNETES},
    };

    /// The scripts of a task on the first host, when all nodes but `dropped` have joined.
    fn scripts(inputs: &Inputs, mut task: Task, dropped: &str) -> String {
        let first = &inputs.api_host.name;
        let slots = Slots::default();
        for host in inputs.spec.nodes().into_iter().filter(|host| host.name != dropped) {
            slots.done(&slots::joined_slot(&host.name));
        }
        slots.fail(&slots::joined_slot(dropped), "it was dropped");
        let mut text = String::new();
        for action in task.hosts.remove(first).unwrap().actions {
            let Apply::Late(make) = action.apply(inputs.facts(inputs.api_host).unwrap()) else {
                panic!("not late")
            };
            let script = make(&slots).unwrap();
            text += &script.text;
            for file in script.files {
                text += std::str::from_utf8(&file.content).unwrap();
            }
        }
        text
    }

    #[tokio::test]
    async fn a_host_that_did_not_join_is_left_out() {
        let spec = testing::sample("three-nodes.yaml");
        let (facts, directory) = (testing::fresh(&spec), tempfile::tempdir().unwrap());
        let names: Vec<String> = spec.nodes().iter().map(|host| host.name.clone()).collect();
        let session = testing::session(spec, directory.path());
        let inputs = session.create_inputs(&facts).await.unwrap();
        for task in [task(&inputs), wait_for_nodes::task(&inputs)] {
            let text = scripts(&inputs, task, &names[2]);
            assert!(text.contains(&names[1]) && !text.contains(&names[2]), "{text}");
        }
    }

    #[tokio::test]
    async fn a_control_plane_whose_join_was_killed_gets_its_marks() {
        let spec = testing::sample("three-nodes.yaml");
        let first = spec.first_control_plane().name.clone();
        let directory = tempfile::tempdir().unwrap();
        let mut facts = testing::fresh(&spec);
        let file = FileFact { sha256: "same".into(), ..FileFact::default() };
        for path in ["/etc/kubernetes/kubelet.conf", "/etc/kubernetes/pki/ca.crt"] {
            facts.facts.get_mut(&first).unwrap().files.insert(path.into(), file.clone());
        }
        let session = testing::session(spec, directory.path());
        let mark = "node-role.kubernetes.io/control-plane";
        for (label, taint, marked, tainted) in [
            ("x", "", false, false),
            (mark, "", true, false),
            (mark, mark, true, true),
            (mark, "other", true, false),
        ] {
            let answer = format!(
                "Node\t{first}\tTrue\t{KUBERNETES}\t{label}= \t{taint}:NoSchedule \nConfigMap\tkube-system/kubeadm-config\n\
                 ConfigMap\tkube-public/cluster-info\nend\n"
            );
            facts.facts.get_mut(&first).unwrap().reply(&API, answer);
            let text = {
                let inputs = session.create_inputs(&facts).await.unwrap();
                scripts(&inputs, task(&inputs), "nobody")
            };
            let has = |verb: &str, word: &str| {
                let begins = format!("kubectl {verb} --overwrite node {first} ");
                text.lines().any(|line| line.starts_with(&begins) && line.contains(word))
            };
            assert_eq!(has("label", &format!("{mark}=")), !marked, "{text}");
            assert_eq!(has("taint", &format!("{mark}:NoSchedule")), !tainted, "{text}");
        }
    }
}
