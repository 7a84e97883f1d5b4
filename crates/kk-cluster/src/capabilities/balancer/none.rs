//! No load balancer of kk: the API is reached at a control plane or at a load balancer of the user.

use kk_config::Host;
use kk_engine::{ProbeSpec, Task};

use super::{asks, kube_vip, tasks};
use crate::{
    base::error::BuildError,
    model::{
        capability::{Capability, Stage},
        inputs::Inputs,
    },
};

/// Removes the balancer that an earlier file specified.
pub(super) struct NoBalancer;

impl Capability for NoBalancer {
    fn name(&self) -> &'static str {
        "balancer"
    }

    fn stage(&self) -> Stage {
        Stage::Hosts
    }

    fn asks(&self, _inputs: &Inputs, host: &Host, probe: &mut ProbeSpec) {
        asks(host, probe);
    }

    fn install(&self, inputs: &Inputs) -> Result<Vec<Task>, BuildError> {
        Ok(tasks(inputs, Vec::new()))
    }

    fn remove(&self, inputs: &Inputs) -> Vec<Task> {
        vec![kube_vip::remove_kube_vip::of_cluster(inputs)]
    }
}
