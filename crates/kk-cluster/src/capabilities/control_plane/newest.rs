//! Finds the newest version of the control planes.

use kk_config::{Host, KubeVersion};

use crate::{base::questions::SETTINGS, capabilities::versions::RECORDED, model::inputs::Inputs};

/// The newest version of the control planes, and the control plane that has it. The version is read from the node, from the
/// manifest of the API server and from the note: any of these may be older if a run ended early. An older API server may not
/// understand what the newest one has written.
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
