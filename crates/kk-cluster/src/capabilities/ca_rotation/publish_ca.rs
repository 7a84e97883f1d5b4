//! Publish the CAs of this round in the cluster.

use std::{sync::Arc, time::Duration};

use kk_engine::{HostWork, Task, actions::Command};

use super::{Authorities, Round, text};
use crate::{
    base::{host_layout::KUBECTL, slots},
    model::inputs::Inputs,
};

/// The controller manager publishes the CAs in each namespace; the task waits for that.
pub(super) fn task(inputs: &Inputs, authorities: &Arc<Authorities>, round: Round) -> Task {
    let publish = Command::new(
        "wait until all namespaces have the CAs of this round",
        text(round, &[], &[KUBECTL, include_str!("publish_ca.sh")]),
    )
    .file("ca.new", authorities.cluster.ca_cert().as_bytes())
    .hint("does not publish", "see \"crictl logs\" of kube-controller-manager on the control planes");
    let mut work = HostWork::new(vec![Box::new(publish)]).provides(slots::ca_published_slot());
    for (host, _) in inputs.control_planes() {
        work = work.needs(slots::settings_applied_slot(&host.name));
    }
    Task::new("publish_ca", "Publish the CAs of this round")
        .timeout(Duration::from_mins(5))
        .on(&inputs.api_host.name, work)
}
