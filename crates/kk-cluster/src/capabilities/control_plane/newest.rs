//! How far the control planes have come.

use kk_config::{Host, KubeVersion};

use crate::{base::questions::SETTINGS, capabilities::versions::RECORDED, model::inputs::Inputs};

/// The newest version of a control plane, and which one it is: by its node, by the manifest of its API server, or by its note. Any of
/// them may be behind when a run has ended early, and what the newest API server has written an older one may not understand.
pub(crate) fn newest<'a>(inputs: &Inputs<'a>) -> Option<(KubeVersion, &'a Host)> {
    let of = |host: &'a Host| {
        let node = inputs.state.nodes.get(&host.name).map(|node| node.version.clone());
        let facts = inputs.facts(host);
        let manifest = facts.and_then(|facts| facts.answer(&SETTINGS).answered()?.remove("version"));
        let said = [node, manifest].into_iter().flatten().filter_map(|text| text.parse().ok());
        let noted = facts.and_then(|facts| facts.answer(&RECORDED).answered()?.kubernetes());
        Some((said.chain(noted).max()?, host))
    };
    inputs.spec.control_planes().into_iter().filter_map(of).max_by_key(|(version, _)| *version)
}
