//! Take the kubelets of workers through a round of the rotation.

use std::{sync::Arc, time::Duration};

use kk_config::{Host, Role};
use kk_engine::{HostWork, Task, actions::Command};

use super::{Authorities, Round, is_worker, text};
use crate::{
    base::{
        rollout::{Candidate, Rollout},
        slots,
    },
    capabilities::{balancer::haproxy, nodes::kubelet_works},
    model::inputs::Inputs,
};

/// Rotates kubelets in turns, the first one alone. Pods continue to run while a kubelet restarts. With turns, a CA that kubelets
/// cannot use stops only one of them, and API servers that have just restarted get only a part of the load at a time.
pub(super) fn task(inputs: &Inputs, authorities: &Arc<Authorities>, round: Round) -> Task {
    let title = match round {
        Round::TrustBoth => "Make kubelets trust both CAs",
        Round::Issue => "Issue new certificates for kubelets",
        Round::TrustNew => "Make kubelets trust only the new CA",
    };
    let mut task = Task::new("rotate_workers", title);
    let workers: Vec<_> =
        inputs.nodes().into_iter().map(|(host, _)| host).filter(|host| is_worker(host)).collect();
    let candidates: Vec<_> =
        workers.iter().map(|host| Candidate { host, runs: true, changes: true }).collect();
    let rollout = Rollout::new("kubelet", &candidates);
    for host in workers {
        let mut work = HostWork::new(vec![
            Box::new(kubelet(authorities, host, round)),
            Box::new(kubelet_works(inputs, host)),
        ])
        .provides(slots::kubelet_works_slot(&host.name));
        for (control_plane, _) in inputs.control_planes() {
            work = work.needs(slots::settings_applied_slot(&control_plane.name));
        }
        work = rollout.after_first(host, work);
        task = task.on(&host.name, rollout.shows_first(host, work));
    }
    rollout.in_turns(task.timeout(Duration::from_mins(5)))
}

/// Replaces the CAs that a kubelet trusts, and in the second round also its certificate.
pub(super) fn kubelet(authorities: &Authorities, host: &Host, round: Round) -> Command {
    let describe = match round {
        Round::TrustBoth => "restart the kubelet, which then trusts both CAs",
        Round::Issue => "restart the kubelet with a new certificate",
        Round::TrustNew => "restart the kubelet, which then trusts only the new CA",
    };
    let pair = authorities.cluster.kubelet(&host.name);
    Command::new(
        describe,
        text(round, &[("node", &host.name)], &[haproxy::LOAD, include_str!("rotate_kubelet.sh")]),
    )
    .file("ca.new", authorities.cluster.ca_cert().as_bytes())
    .file("kubelet-client.pem", format!("{}{}", pair.cert, pair.key.expose()).into_bytes())
}

/// Whether a component on the host connects to etcd.
pub(super) fn asks_etcd(host: &Host) -> bool {
    host.has_role(&Role::Etcd) || host.has_role(&Role::ControlPlane)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{commands::add_nodes::tests::spec, testing};

    #[tokio::test]
    async fn one_worker_shows_that_the_cas_of_a_round_work_before_the_others_get_them() {
        let directory = tempfile::tempdir().unwrap();
        let session = testing::session(spec(), directory.path());
        let (probed, authorities) = (testing::fresh(&spec()), session.new_authorities(None).unwrap());
        let inputs = session.create_inputs(&probed).await.unwrap();
        for round in Round::ALL {
            let task = task(&inputs, &authorities, round);
            let first = slots::works_on_first_slot("kubelet");
            assert_eq!(task.turn.unwrap().order, ["n2", "n4"], "{round:?}");
            assert!(task.hosts["n2"].provides.contains(&first), "{round:?}");
            assert!(task.hosts["n4"].needs.contains(&first), "{round:?}");
        }
    }
}
