//! The cluster of a host: from the head of its record, or, if an older version created the record, from etcd's settings.

use std::collections::BTreeSet;

use kk_config::Host;
use kk_engine::{Facts, ProbeSpec, Question, question};

use crate::{
    base::{
        error::BuildError,
        findings::Findings,
        host_layout::{CLUSTER_CA, ETCD_CA, ETCD_ENVIRONMENT, KUBELET_CONF, KUBELET_UNIT},
        questions::ca_rotation,
    },
    model::inputs::Inputs,
};

/// The name of the cluster in etcd's settings; empty without settings.
pub(crate) const TOKEN: Question<String> = Question::new(
    "etcd_token",
    "sed -n 's/^ETCD_INITIAL_CLUSTER_TOKEN=kubekey-//p' /etc/etcd.env 2>/dev/null || :",
    question::text,
);

/// The known facts about the cluster of a host.
#[derive(Default)]
struct Belongs {
    cluster: Option<String>,
    etcd_ca: Option<String>,
}

/// Requests the facts for [`of`] and for the refusals.
pub(crate) fn asks(probe: &mut ProbeSpec) {
    probe.ask(&TOKEN);
    probe.ask(&ca_rotation::STAGE);
    probe.files.extend([KUBELET_CONF, CLUSTER_CA, ETCD_CA].map(str::to_owned));
    probe.units.insert("kubelet.service".to_owned());
}

fn of(facts: &Facts) -> Belongs {
    if let Some(identity) = facts.owned.identity() {
        return Belongs {
            cluster: Some(identity.cluster.clone()),
            etcd_ca: Some(identity.ca_sha256.clone()),
        };
    }
    if !facts.owns(ETCD_ENVIRONMENT) {
        return Belongs::default();
    }
    Belongs {
        cluster: facts.answer(&TOKEN).answered().filter(|name| !name.is_empty()),
        etcd_ca: facts.files.get(ETCD_CA).map(|file| file.sha256.clone()),
    }
}

/// The name of another cluster that the host belongs to.
fn other_name(inputs: &Inputs, facts: &Facts) -> Option<String> {
    of(facts).cluster.filter(|cluster| *cluster != inputs.spec.name)
}

/// A create does not change hosts of another cluster.
pub(crate) fn findings(inputs: &Inputs, found: &mut Findings) {
    for (host, facts) in inputs.hosts() {
        // If the record has a head, the answer is not needed.
        if facts.owned.identity().is_none() {
            found.unanswered(host, &facts.answer(&TOKEN), "which cluster its etcd belongs to");
        }
        if let Some(other) = other_name(inputs, facts) {
            found.error(
                host,
                format!("it belongs to the cluster {other}"),
                format!("correct its address in the file; or delete {other} first, with the file of {other}"),
            );
            continue;
        }
        // The checks of etcd compare the CA on hosts of etcd. If a host lost it, its record still names the CA.
        let is_judged = host.has_role(&kk_config::Role::Etcd) && facts.files.contains_key(ETCD_CA);
        let theirs = of(facts).etcd_ca.filter(|_| !is_judged);
        if theirs.is_some_and(|ca| ca != inputs.pki.ca_sum()) {
            found.error(
                host,
                format!("it belongs to another cluster with the name {}", inputs.spec.name),
                format!(
                    "run where that cluster was created; or delete it first, with a file that contains only \
                     its hosts, in a directory without kubekey/{}",
                    inputs.spec.name
                ),
            );
        }
    }
}

/// Refuses to delete anything except the cluster of the file: the file may contain a wrong address, or describe another cluster.
pub(crate) fn refuse_strangers(inputs: &Inputs) -> Result<(), BuildError> {
    let of_file: Vec<(&Host, &Facts)> =
        inputs.spec.hosts.iter().filter_map(|host| Some((host, inputs.facts(host)?))).collect();
    let made_by_others = |facts: &Facts| {
        let holds = facts.files.contains_key(KUBELET_CONF)
            || facts.units.get("kubelet.service").is_some_and(|unit| unit.active);
        holds && !facts.owns(KUBELET_UNIT)
    };
    let names = |is: &dyn Fn(&Facts) -> bool| -> Option<String> {
        let names: Vec<&str> =
            of_file.iter().filter(|(_, facts)| is(facts)).map(|(host, _)| host.name.as_str()).collect();
        (!names.is_empty()).then(|| names.join(", "))
    };
    if let Some(names) = names(&made_by_others) {
        return refuse(
            &format!("{names}: part of a cluster that kk did not create"),
            "correct the file, or run `kubeadm reset` there to remove that cluster",
        );
    }
    let silent = |facts: &Facts| {
        facts.owned.identity().is_none()
            && facts.owns(ETCD_ENVIRONMENT)
            && facts.answer(&TOKEN).unanswered().is_some()
    };
    if let Some(names) = names(&silent) {
        return refuse(
            &format!("{names}: the host did not report which cluster its etcd belongs to"),
            "run again; if the problem remains, check the load and the disk of the host",
        );
    }
    let elsewhere: Vec<String> = of_file
        .iter()
        .filter_map(|(host, facts)| Some(format!("{} (cluster {})", host.name, other_name(inputs, facts)?)))
        .collect();
    if !elsewhere.is_empty() {
        return refuse(
            &format!("the file is for the cluster {}, and {}", inputs.spec.name, belong(&elsewhere)),
            "correct the addresses in the file, or delete that cluster with its own file",
        );
    }
    // During a rotation, hosts have either the old CA or the new one. The control machine that began the rotation has both.
    let mut ours = ca_rotation::etcd_cas(&inputs.directory);
    ours.insert(inputs.pki.ca_sum());
    if let (true, name) = (inputs.pki.is_saved(), &inputs.spec.name)
        && let Some(names) = names(&|facts| of(facts).etcd_ca.is_some_and(|ca| !ours.contains(&ca)))
    {
        return refuse(
            &format!(
                "{names}: part of a cluster with the name {name}, but not the cluster of {}",
                inputs.directory.join("pki").display()
            ),
            "run where that cluster was created, or in a directory without its namesake's certificates",
        );
    }
    one_cluster(&of_file)
}

/// Refuses hosts whose certificates belong to several clusters. In the middle of a rotation a host has two CAs, so it is not
/// compared.
fn one_cluster(of_file: &[(&Host, &Facts)]) -> Result<(), BuildError> {
    let of_file: Vec<_> = of_file.iter().filter(|(_, facts)| !ca_rotation::is_marked(facts)).collect();
    let kinds: [fn(&Facts) -> Option<String>; 2] =
        [|facts| of(facts).etcd_ca, |facts| Some(facts.files.get(CLUSTER_CA)?.sha256.clone())];
    for ca in kinds {
        let there: BTreeSet<String> = of_file.iter().filter_map(|(_, facts)| ca(facts)).collect();
        if there.len() > 1 {
            let named = |(host, facts): &(&Host, &Facts)| {
                let ca = ca(facts)?;
                Some(format!("{} (CA {})", host.name, ca.get(..8).unwrap_or(&ca)))
            };
            let hosts: Vec<String> = of_file.iter().copied().filter_map(named).collect();
            return refuse(
                &format!("the hosts have certificates of {} clusters: {}", there.len(), hosts.join(", ")),
                "correct the addresses, or delete each cluster with a file that contains only its hosts",
            );
        }
    }
    Ok(())
}

fn belong(hosts: &[String]) -> String {
    let verb = if hosts.len() == 1 { "belongs" } else { "belong" };
    format!("{} {verb} to another", hosts.join(", "))
}

fn refuse(what: &str, hint: &str) -> Result<(), BuildError> {
    Err(BuildError::Foreign { what: format!("{what}; nothing is removed"), hint: hint.to_owned() })
}
