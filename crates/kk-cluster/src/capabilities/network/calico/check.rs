//! Conflicts with other networks, a missing manifest, and kernels without IP-in-IP.

use kk_config::Spec;
use kk_engine::ProbeSpec;

use super::settings;
use crate::{
    base::findings::Findings,
    capabilities::network::check,
    model::{command::Command, inputs::Inputs},
};

/// The module of IP-in-IP tunnels.
const IPIP: &str = "ipip";

/// Requests the facts for the findings.
pub(super) fn asks(spec: &Spec, probe: &mut ProbeSpec) {
    if settings(spec).is_some_and(kk_config::Calico::uses_ipip) {
        probe.modules.insert(IPIP.to_owned());
    }
}

pub(super) fn findings(inputs: &Inputs, found: &mut Findings) {
    check::refuse_another(inputs, "calico", found);
    check::refuse_foreign(inputs, "calico", "10-calico.conflist", found);
    check::warn_of_other_networks(inputs, "calico", "10-calico.conflist", found);
    let Some(settings) = settings(inputs.spec) else { return };
    // Other commands neither install calico nor change it.
    if matches!(inputs.command, Command::Create | Command::AddNodes | Command::Upgrade) {
        for problem in inputs.published.problems() {
            let hint =
                "kk can install flannel without a download of a manifest: set `spec.network.plugin: flannel`";
            let hint = if problem.hint.is_empty() {
                hint.to_owned()
            } else {
                format!("{}; or {hint}", problem.hint)
            };
            found.error(None, problem.message.clone(), hint);
        }
    }
    if !settings.uses_ipip() {
        return;
    }
    for (host, facts) in inputs.nodes() {
        if !facts.features.contains(IPIP) && !facts.modules.contains(IPIP) {
            found.error(
                host,
                "the kernel has no IP-in-IP tunnels (the module ipip)",
                format!(
                    "set `spec.network.calico.vxlanMode: Always`, or install the modules of kernel {}",
                    facts.kernel
                ),
            );
        }
    }
}
