//! Questions for each host before kk decides anything: a loop over the capabilities.

use kk_config::Host;
use kk_engine::{Pipeline, ProbeSpec};

use crate::{
    base::{questions::MACHINE_ID, requirements::Protocol},
    capabilities::{
        kubesphere::remove_kubesphere,
        os::ownership::{identity, other_run},
    },
    commands::session::installed,
    model::{capability::Capabilities, inputs::Inputs, options::Options},
};

/// All questions of a create for each host, in one round trip. `inputs` and `pipeline` were built without facts: every action
/// requests the facts for its check.
pub(crate) fn specs<'a>(
    capabilities: &Capabilities,
    inputs: &Inputs<'a>,
    pipeline: &Pipeline,
) -> Vec<(&'a Host, ProbeSpec)> {
    let mut of_actions = pipeline.asks();
    let spec = |host: &'a Host| {
        let mut probe = of_actions.remove(&host.name).unwrap_or_default();
        probe.ask(&MACHINE_ID);
        probe.files.extend(inputs.requirements.directories.iter().cloned());
        let tcp = inputs.requirements.ports(host).iter().filter(|port| port.protocol == Protocol::Tcp);
        probe.ports.extend(tcp.map(|port| port.number));
        for capability in capabilities {
            capability.asks(inputs, host, &mut probe);
        }
        (host, probe)
    };
    inputs.spec.hosts.iter().map(spec).collect()
}

/// The questions of a delete: whether the host belongs to a cluster, and to which one. Every answer includes the ownership
/// record.
pub(crate) fn delete_spec(host: &Host, options: &Options) -> ProbeSpec {
    let mut probe = ProbeSpec::default();
    identity::asks(&mut probe);
    other_run::asks(&mut probe);
    installed::asks(host, &mut probe);
    if !options.skip_kubesphere {
        remove_kubesphere::asks(host, &mut probe);
    }
    probe
}
