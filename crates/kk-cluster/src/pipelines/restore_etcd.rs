//! `kk etcd restore`.

use kk_config::Host;
use kk_engine::Pipeline;

use crate::{
    capabilities::etcd_restore::{self, Snapshot},
    findings::Findings,
    inputs::Inputs,
};

pub(crate) fn findings(inputs: &Inputs, found: &mut Findings) {
    let members = etcd_restore::members(inputs);
    if members.is_empty() {
        found.error(
            None,
            "etcd is installed on no host that answers",
            "kk create cluster installs it; then restore the snapshot",
        );
    }
    if inputs.spec.etcd.extra_args.iter().any(|line| line.starts_with("ETCD_WAL_DIR=")) {
        found.error(
            None,
            "etcd has its log elsewhere (ETCD_WAL_DIR), which a restore would mix with other data",
            "take it out of spec.etcd.extraArgs, and let kk create cluster apply that first",
        );
    }
    let data = &inputs.spec.etcd.data_dir;
    let takes_part = |host: &Host| members.iter().any(|(member, _)| member.name == host.name);
    for host in inputs.spec.etcd_hosts().into_iter().filter(|host| !takes_part(host)) {
        match inputs.facts(host) {
            Some(_) => found.warning(
                host,
                "etcd is not installed there: it takes no part",
                "kk create cluster joins it afterwards",
            ),
            None => found.warning(
                host,
                "it does not answer, and takes no part",
                format!(
                    "before its etcd runs again, remove {data}/member there; then kk create cluster joins it"
                ),
            ),
        }
    }
    for host in inputs.spec.control_planes().into_iter().filter(|host| inputs.facts(host).is_none()) {
        found.warning(
            host,
            "its API server cannot be stopped: where it still runs, it answers from the state of before",
            "restart it once it can be reached",
        );
    }
}

pub(crate) fn send(inputs: &Inputs, snapshot: &Snapshot) -> Pipeline {
    Pipeline::new(vec![etcd_restore::send(inputs, snapshot)])
}

pub(crate) fn take_back(inputs: &Inputs, snapshot: &Snapshot) -> Pipeline {
    Pipeline::new(vec![etcd_restore::take_back(inputs, snapshot)])
}

pub(crate) fn pipeline(inputs: &Inputs, snapshot: &Snapshot) -> Pipeline {
    Pipeline::new(vec![etcd_restore::restore(inputs, snapshot)])
}
