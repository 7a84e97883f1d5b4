//! Determines whether KubeSphere monitors the members of this cluster.

use std::collections::BTreeSet;

use kk_config::{KubeSphere as Wanted, Spec};
use serde_json::Value;

/// Whether Prometheus is configured to monitor the members of this cluster. It reads their metrics from a port for metrics only,
/// because etcd permits every client whose certificate it accepts to change all objects.
pub(crate) fn watches_members(spec: &Spec, wanted: &Wanted) -> bool {
    let monitoring = wanted.configuration.get("etcd").and_then(|etcd| etcd.get("monitoring"));
    names_members(spec, wanted) && monitoring == Some(&Value::Bool(true))
}

/// Whether the document lists only members of this cluster, and no other etcd. It may list some of them.
pub(crate) fn names_members(spec: &Spec, wanted: &Wanted) -> bool {
    let members: BTreeSet<String> =
        spec.etcd_hosts().into_iter().map(|host| host.internal_address.to_string()).collect();
    match wanted.configuration.get("etcd").and_then(|etcd| etcd.get("endpointIps")).and_then(Value::as_str) {
        None | Some("localhost") => true,
        Some(said) => {
            let mut addresses = said.split(',').map(str::trim).filter(|address| !address.is_empty());
            addresses.all(|address| members.contains(address))
        }
    }
}
