//! `kk etcd restore`.

use kk_config::Host;
use kk_engine::Pipeline;

use crate::{
    base::findings::Findings,
    capabilities::etcd_restore::{self, Snapshot},
    model::inputs::Inputs,
};

/// With `force`, members and API servers that cannot be stopped are only a warning.
pub(crate) fn findings(inputs: &Inputs, force: bool, found: &mut Findings) {
    let unreachable = |host: &Host, message: &str, then: &str, found: &mut Findings| {
        if force {
            found.warning(host, message, then);
        } else {
            let hint = format!("repair the host, or stop it and run again with --force: {then}");
            found.error(host, message, hint);
        }
    };
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
            "etcd has its log in another directory (ETCD_WAL_DIR), which would not match the restored data",
            "first remove it from spec.etcd.extraArgs and run kk create cluster",
        );
    }
    let takes_part = |host: &Host| members.iter().any(|(member, _)| member.name == host.name);
    for host in inputs.spec.etcd_hosts().into_iter().filter(|host| !takes_part(host)) {
        match inputs.facts(host) {
            Some(_) => found.warning(
                host,
                "etcd is not installed on it: the restore leaves it out",
                "kk create cluster joins it afterwards",
            ),
            None => unreachable(
                host,
                "it does not answer: if its etcd still runs, it keeps the previous data",
                "kk create cluster joins it again, with the data of the other members",
                found,
            ),
        }
    }
    for host in inputs.spec.control_planes().into_iter().filter(|host| inputs.facts(host).is_none()) {
        unreachable(
            host,
            "its API server cannot be stopped: if it still runs, it returns the previous state",
            "restart it when it is reachable",
            found,
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

#[cfg(test)]
mod tests {
    use kk_engine::{Failure, FileFact, Severity};

    use super::*;
    use crate::testing;

    #[tokio::test]
    async fn a_host_that_cannot_be_stopped_is_an_error_unless_it_is_forced() {
        for (force, severity) in [(false, Severity::Error), (true, Severity::Warning)] {
            let (spec, directory) = (testing::sample("three-nodes.yaml"), tempfile::tempdir().unwrap());
            let mut probed = testing::fresh(&spec);
            for facts in probed.facts.values_mut() {
                facts.files.insert("/etc/etcd.env".into(), FileFact::default());
            }
            let session = testing::session(spec.clone(), directory.path());
            let lost = &spec.etcd_hosts()[2].name;
            probed.facts.remove(lost);
            probed.failures.insert(lost.clone(), Failure::new("no route to host"));
            let inputs = session.create_inputs(&probed).await.unwrap();
            let mut found = Findings::default();
            findings(&inputs, force, &mut found);
            assert!(!found.0.is_empty());
            for one in found.0 {
                assert_eq!((one.host.as_ref(), one.severity), (Some(lost), severity), "{}", one.message);
            }
        }
    }
}
