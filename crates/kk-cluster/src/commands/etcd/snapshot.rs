//! `kk etcd snapshot`, and the first step of `kk upgrade`.

use kk_config::Host;
use kk_engine::Pipeline;

use crate::{
    base::findings::Findings,
    capabilities::{etcd, etcd_backup},
    model::inputs::Inputs,
};

/// The member for the snapshot: the first healthy member.
pub(crate) fn member<'a>(inputs: &Inputs<'a>) -> Option<&'a Host> {
    let is_healthy = |facts| etcd::is_healthy(facts) == Some(true);
    inputs.etcd_hosts().into_iter().find(|(_, facts)| is_healthy(facts)).map(|(host, _)| host)
}

pub(crate) fn findings(inputs: &Inputs, found: &mut Findings) {
    if member(inputs).is_none() {
        found.error(
            None,
            "no member of etcd is healthy: there is nothing to take a snapshot of",
            "kk create cluster repairs members; kk etcd restore rebuilds etcd from a snapshot",
        );
    }
}

pub(crate) fn pipeline(inputs: &Inputs) -> Pipeline {
    Pipeline::new(member(inputs).map(|host| etcd_backup::snapshot(inputs, host)).into_iter().collect())
}
