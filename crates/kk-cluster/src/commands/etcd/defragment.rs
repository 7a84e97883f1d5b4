//! `kk etcd defrag`.

use kk_engine::{Module, Pipeline};

use crate::{
    base::findings::Findings,
    capabilities::etcd::{self, defragment},
    model::inputs::Inputs,
};

/// While a member is defragmented it is unavailable, so all other members have to be healthy.
pub(crate) fn findings(inputs: &Inputs, found: &mut Findings) {
    for host in inputs.spec.etcd_hosts() {
        if inputs.facts(host).and_then(etcd::is_healthy) != Some(true) {
            found.error(
                host,
                "its member of etcd is not healthy",
                "kk create cluster repairs members; defragment when all are healthy",
            );
        }
    }
}

pub(crate) fn pipeline(inputs: &Inputs, order: &[String]) -> Pipeline {
    Pipeline::new(vec![Module::new("etcd", vec![defragment::task(inputs, order)])])
}
