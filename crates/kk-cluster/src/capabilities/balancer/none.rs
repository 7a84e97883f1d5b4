//! No load balancer of kk: the API is reached at a control plane or at a load balancer of the user.

use kk_config::Host;
use kk_engine::{ProbeSpec, Task};

use super::{asks, kube_vip, tasks};
use crate::{
    base::{error::BuildError, findings::Findings},
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

    /// A cluster that exists stays as it is: the file's own warning is enough for it.
    fn findings(&self, inputs: &Inputs, found: &mut Findings) {
        let endpoint = &inputs.spec.control_plane_endpoint;
        let (number, address) = (inputs.spec.control_planes().len(), endpoint.address);
        let is_refused = number > 1 && !endpoint.has_address && !inputs.is_initialised();
        if let Some(address) = address.filter(|_| is_refused) {
            let message = format!("a new cluster with {number} control planes needs a load balancer");
            let hint = format!(
                "set `internalLoadbalancer: haproxy` in spec.controlPlaneEndpoint, or the address of a load balancer \
                 of your own as `address`; `address: {address}` accepts that no node can reach the API if this \
                 control plane fails"
            );
            found.error(None, message, hint);
        }
    }

    fn install(&self, inputs: &Inputs) -> Result<Vec<Task>, BuildError> {
        Ok(tasks(inputs, Vec::new()))
    }

    fn remove(&self, inputs: &Inputs) -> Vec<Task> {
        vec![kube_vip::remove_kube_vip::of_cluster(inputs)]
    }
}
