//! What the hosts are together, and what cluster is there already.

use std::collections::BTreeMap;

use kk_config::{Host, Spec};
use kk_engine::Facts;

use super::{Finding, Severity};

const CA: &str = "/etc/kubernetes/pki/ca.crt";
const ETCD_CA: &str = "/etc/ssl/etcd/ssl/ca.pem";

pub(super) fn check(spec: &Spec, facts: &BTreeMap<String, Facts>, etcd_ca: &str, list: &mut Vec<Finding>) {
    leftovers(spec, facts, list);
    etcd_leftovers(spec, facts, etcd_ca, list);
    same_machine(spec, facts, list);
    clocks(facts, list);
}

/// Clocks that are further apart than this break leases and certificates, in milliseconds.
const CLOCK_SKEW_MS: i64 = 1000;

/// What is made here is not valid on hosts whose clocks are further behind than this, or no longer, in milliseconds.
const OWN_SKEW_MS: i64 = 10 * 60 * 1000;

/// Compares the hosts' clocks with the middle one of them, and that one with this machine's, which may differ more.
fn clocks(facts: &BTreeMap<String, Facts>, list: &mut Vec<Finding>) {
    let mut skews: Vec<(i64, i64)> =
        facts.values().map(|facts| (facts.clock_skew_ms, facts.clock_uncertainty_ms)).collect();
    skews.sort_unstable();
    let Some((middle, unsure)) = skews.get(skews.len() / 2).copied() else { return };
    if middle.abs() > OWN_SKEW_MS {
        let way = if middle > 0 { "behind" } else { "ahead of" };
        list.push(error(
            None,
            format!("this machine's clock is {} s {way} the hosts'", middle.unsigned_abs() / 1000),
            "set it right: certificates that are made here would not be valid there",
        ));
    }
    for (host, facts) in facts {
        let off = facts.clock_skew_ms - middle;
        if off.abs() > CLOCK_SKEW_MS + unsure + facts.clock_uncertainty_ms {
            let way = if off > 0 { "ahead of" } else { "behind" };
            list.push(Finding {
                severity: Severity::Error,
                host: Some(host.clone()),
                message: format!("its clock is {} ms {way} the other hosts'", off.unsigned_abs()),
                hint: "set up time synchronisation (chrony, systemd-timesyncd)".to_owned(),
            });
        }
    }
}

fn error(host: Option<&Host>, message: String, hint: impl Into<String>) -> Finding {
    Finding {
        severity: Severity::Error,
        host: host.map(|host| host.name.clone()),
        message,
        hint: hint.into(),
    }
}

fn ca_of<'a>(facts: &'a BTreeMap<String, Facts>, host: &Host, path: &str) -> Option<&'a str> {
    Some(facts.get(&host.name)?.files.get(path)?.sha256.as_str())
}

/// A host that belongs, or belonged, to a cluster other than the one of the first control plane.
fn leftovers(spec: &Spec, facts: &BTreeMap<String, Facts>, list: &mut Vec<Finding>) {
    let first = spec.first_control_plane();
    let ours = ca_of(facts, first, CA);
    for host in spec.nodes() {
        let theirs = ca_of(facts, host, CA);
        if theirs.is_some() && theirs != ours {
            list.push(error(
                Some(host),
                "it holds certificates of another cluster".to_owned(),
                format!("remove that cluster first (kk delete cluster with its file, or kubeadm reset), or take {} out of this file", host.name),
            ));
        }
    }
    if ours.is_none() {
        let foreign = facts
            .get(&first.name)
            .is_some_and(|facts| facts.files.contains_key("/etc/kubernetes/manifests/kube-apiserver.yaml"));
        if foreign {
            list.push(error(
                Some(first),
                "it runs a control plane without a CA".to_owned(),
                "remove that cluster first",
            ));
        }
    }
}

/// Certificates of another CA must not come among members that run: they would no longer understand each other.
fn etcd_leftovers(spec: &Spec, facts: &BTreeMap<String, Facts>, etcd_ca: &str, list: &mut Vec<Finding>) {
    let cas: std::collections::BTreeSet<&str> =
        spec.etcd_hosts().into_iter().filter_map(|host| ca_of(facts, host, ETCD_CA)).collect();
    if cas.len() > 1 {
        list.push(error(
            None,
            "the etcd hosts hold certificates of different clusters".to_owned(),
            "remove the other cluster from its hosts first",
        ));
    } else if cas.first().is_some_and(|ca| *ca != etcd_ca) {
        list.push(error(
            None,
            "the CA of the etcd on these hosts is not on this machine".to_owned(),
            format!(
                "run where the cluster was created, or copy its folder kubekey/{}/pki from there; to begin anew, delete the cluster first",
                spec.name
            ),
        ));
    }
    for host in spec.etcd_hosts() {
        let Some(facts) = facts.get(&host.name) else { continue };
        let has_data = facts.values.get("etcd_data").is_some_and(|answer| answer == "yes");
        if has_data && !super::is_ours(facts, "/etc/etcd.env") {
            list.push(error(
                Some(host),
                format!("{} holds data of another etcd", spec.etcd.data_dir),
                "move it away, or set spec.etcd.dataDir to another folder",
            ));
        }
    }
}

/// Two names of the file that lead to one machine.
fn same_machine(spec: &Spec, facts: &BTreeMap<String, Facts>, list: &mut Vec<Finding>) {
    let mut seen: BTreeMap<&str, &str> = BTreeMap::new();
    for host in &spec.hosts {
        let Some(id) = facts.get(&host.name).and_then(|facts| facts.values.get("machine_id")) else {
            continue;
        };
        if id.is_empty() {
            continue;
        }
        if let Some(other) = seen.insert(id, &host.name) {
            list.push(Finding {
                severity: Severity::Warning,
                host: Some(host.name.clone()),
                message: format!("it has the machine id of {other}"),
                hint: "two names of one machine, or a cloned machine: give it an own /etc/machine-id"
                    .to_owned(),
            });
        }
    }
}
