//! Blockers of an upgrade that only the cluster itself knows. They are queried from its API in an additional round, because no
//! other command needs them.

mod answers;

use std::collections::{BTreeMap, BTreeSet};

use kk_config::{Host, KubeVersion};
use kk_engine::{Facts, ProbeSpec};

use crate::{
    base::{findings::Findings, probed::Probed},
    model::{inputs::Inputs, options::Drain},
};
use answers::{Budget, DEPRECATED, OBJECTS, Objects, deprecated_question, objects_question};

/// Every control plane is asked for the requests that its API server got; one of them is also asked for the objects in the
/// cluster.
pub(crate) fn specs<'a>(inputs: &Inputs<'a>) -> Vec<(&'a Host, ProbeSpec)> {
    let spec = |(host, _): (&'a Host, &Facts)| {
        let mut probe = ProbeSpec::default();
        probe.ask(&deprecated_question(host));
        if host.name == inputs.api_host.name {
            probe.ask(&objects_question(host));
        }
        (host, probe)
    };
    inputs.control_planes().into_iter().map(spec).collect()
}

/// Reports all blockers at once, before the first change. `asked` contains the answers, `drained` the nodes whose pods move.
pub(crate) fn findings(
    inputs: &Inputs,
    asked: &Probed,
    target: KubeVersion,
    drained: &BTreeSet<String>,
    how: &Drain,
    found: &mut Findings,
) {
    for (host, _) in inputs.control_planes() {
        if let Some(failure) = asked.failures.get(&host.name) {
            found.error(host, format!("it stopped answering: {failure}"), "run again");
        }
    }
    deprecated(inputs, asked, target, found);
    let Some(facts) = asked.facts.get(&inputs.api_host.name) else { return };
    let answer = facts.answer(&OBJECTS);
    found.unanswered(inputs.api_host, &answer, "what may block the draining of nodes");
    let Some(objects) = answer.answered() else { return };
    webhooks(&objects, found);
    if !drained.is_empty() {
        budgets(&objects.budgets, how, found);
        lonely(&objects, drained, how, found);
    }
}

fn deprecated(inputs: &Inputs, asked: &Probed, target: KubeVersion, found: &mut Findings) {
    let mut gone: BTreeMap<_, BTreeSet<String>> = BTreeMap::new();
    for (host, _) in inputs.control_planes() {
        let Some(facts) = asked.facts.get(&host.name) else { continue };
        let Some(apis) = facts.answer(&DEPRECATED).answered() else {
            // Its API server may have been left half-upgraded by an earlier run.
            found.warning(host, "it did not report which deprecated APIs are in use", "");
            continue;
        };
        for api in apis {
            gone.entry((api.removed, api.name)).or_default().extend(api.writers);
        }
    }
    let is_gone = |version: (u32, u32)| version <= (target.major, target.minor);
    for ((removed, api), writers) in gone.into_iter().filter(|((removed, _), _)| is_gone(*removed)) {
        let (major, minor) = removed;
        let writers = Vec::from_iter(writers).join(", ");
        let written =
            if writers.is_empty() { String::new() } else { format!("; {writers} wrote objects with it") };
        found.warning(
            None,
            format!("clients use {api}, which Kubernetes {major}.{minor} no longer has{written}"),
            "change the clients to a newer version of this API; the audit log marks their requests with \
             k8s.io/deprecated",
        );
    }
}

/// The pods of a webhook move like other pods. Meanwhile, and if they cannot start again, the API refuses the requests that the
/// webhook covers.
fn webhooks(objects: &Objects, found: &mut Findings) {
    for (name, service) in &objects.webhooks {
        if objects.endpoints.get(service) == Some(&0) {
            found.warning(
                None,
                format!(
                    "the webhook {name} blocks the requests that it covers: its Service {service} has \
                         no ready endpoint"
                ),
                "start its server, or remove its configuration: otherwise evicted pods may not be re-created",
            );
        }
    }
}

/// Never an error: the owner of a budget may remove it when a node is cordoned, or move the pod when it is evicted. If a drain
/// fails, its error names the pod, and the node accepts pods again.
fn budgets(budgets: &[Budget], how: &Drain, found: &mut Findings) {
    for Budget { name, healthy, wanted, pods, .. } in
        budgets.iter().filter(|one| one.allowed == 0 && one.pods > 0)
    {
        if wanted < pods {
            found.warning(
                None,
                format!(
                    "the PodDisruptionBudget {name} allows no eviction now: {healthy} of {pods} pods \
                         are healthy, and it requires {wanted}"
                ),
                "a drain waits for its pods, for at most --drain-timeout",
            );
        } else if how.force {
            found.warning(
                None,
                format!("the PodDisruptionBudget {name} allows no eviction: it requires all {pods}"),
                "with --force its pods are deleted after --drain-timeout",
            );
        } else {
            found.warning(
                None,
                format!("the PodDisruptionBudget {name} allows no eviction: it requires all {pods}"),
                "unless their own controller moves them, their nodes cannot be drained: make it require \
                 fewer pods, or add pods to the workload",
            );
        }
    }
}

fn lonely(objects: &Objects, drained: &BTreeSet<String>, how: &Drain, found: &mut Findings) {
    for (pod, node) in objects.lonely.iter().filter(|(_, node)| drained.contains(node)) {
        let message = format!("no controller re-creates the pod {pod} of {node}");
        if how.force {
            found.warning(None, message, "with --force it is deleted when its node is drained");
        } else {
            found.error(
                None,
                message,
                "delete it yourself, or use --force, which deletes it when its node is drained",
            );
        }
    }
}

#[cfg(test)]
mod tests;
