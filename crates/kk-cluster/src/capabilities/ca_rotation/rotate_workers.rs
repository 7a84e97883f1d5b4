//! Take the kubelets of workers through a round of the rotation.

use std::{sync::Arc, time::Duration};

use kk_config::{Host, Role};
use kk_engine::{HostWork, Task, actions::Command};

use super::{Authorities, Round, is_worker, text};
use crate::{capabilities::nodes::kubelet_works, inputs::Inputs, slots};

/// All at once: pods go on while a kubelet restarts.
pub(super) fn task(inputs: &Inputs, authorities: &Arc<Authorities>, round: Round) -> Task {
    let title = match round {
        Round::TrustBoth => "Let kubelets trust both CAs",
        Round::Issue => "Give kubelets their new certificates",
        Round::TrustNew => "Let kubelets trust the new CA only",
    };
    let mut task = Task::new("rotate_workers", title);
    for (host, _) in inputs.nodes().into_iter().filter(|(host, _)| is_worker(host)) {
        let mut work = HostWork::new(vec![
            Box::new(kubelet(authorities, host, round)),
            Box::new(kubelet_works(inputs, host)),
        ])
        .provides(slots::kubelet_works_slot(&host.name));
        for (control_plane, _) in inputs.control_planes() {
            work = work.needs(slots::settings_applied_slot(&control_plane.name));
        }
        task = task.on(&host.name, work);
    }
    task.timeout(Duration::from_mins(5))
}

/// What a kubelet trusts, and in the second round its certificate.
pub(super) fn kubelet(authorities: &Authorities, host: &Host, round: Round) -> Command {
    let describe = match round {
        Round::TrustBoth => "restart the kubelet, which then trusts both CAs",
        Round::Issue => "restart the kubelet with a new certificate",
        Round::TrustNew => "restart the kubelet, which then trusts the new CA only",
    };
    let pair = authorities.cluster.kubelet(&host.name);
    Command::new(describe, text(round, &[], &[include_str!("rotate_kubelet.sh")]))
        .file("ca.new", authorities.cluster.ca_cert().as_bytes())
        .file("kubelet-client.pem", format!("{}{}", pair.cert, pair.key.expose()).into_bytes())
}

/// Whether something on the host speaks to etcd.
pub(super) fn asks_etcd(host: &Host) -> bool {
    host.has_role(&Role::Etcd) || host.has_role(&Role::ControlPlane)
}
