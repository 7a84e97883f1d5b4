//! Reports blockers of addons before the first change, and addons that the file no longer lists.

use std::collections::{BTreeMap, BTreeSet};

use kk_config::AddonPhase;

use super::{needed, state};
use crate::{
    base::{findings::Findings, host_layout::NOTES},
    capabilities::network,
    model::inputs::Inputs,
};

/// The findings about addons of a phase. Addons that the file no longer lists have no phase, so they are reported with the last
/// phase.
pub(super) fn findings(inputs: &Inputs, phase: AddonPhase, found: &mut Findings) {
    for addon in inputs.addons.iter().filter(|addon| addon.addon.phase == phase) {
        found.0.extend(addon.problems.iter().cloned());
        if let (Some(version), Some(chart)) = (addon.chosen_version(), &addon.chart) {
            let name = &addon.addon.name;
            let message = format!("the addon {name} has no version in the file: kk uses {}", chart.source);
            let hint =
                format!("write `version: {version}` into its chart; until then, kk keeps this version");
            found.warning(None, message, hint);
        }
    }
    let states = state::of_all(inputs);
    if phase == AddonPhase::Cluster {
        gone(inputs, &states, found);
    }
    moved(inputs, &states, phase, found);
}

/// Each control plane keeps notes of the addons that it has installed.
type States<'a> = [(&'a kk_config::Host, state::State)];

fn gone(inputs: &Inputs, states: &States<'_>, found: &mut Findings) {
    let mut gone: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (host, state) in states {
        let names = state.notes().map(|(name, _)| name);
        let is_listed = |name: &str| {
            inputs.spec.addons.iter().any(|addon| addon.name == name)
                || network::own_release(inputs.spec) == Some(name)
        };
        for name in names.filter(|name| !is_listed(name)) {
            gone.entry(name).or_default().push(&host.name);
        }
    }
    for (name, hosts) in gone {
        let note = format!("{NOTES}/addon-{name}");
        found.warning(
            None,
            format!("the addon {name} is no longer in the file; kk does not remove it"),
            format!(
                "remove it by `helm uninstall` or `kubectl delete`, and {note}, {note}.objects and {note}.release on {}",
                hosts.join(", ")
            ),
        );
    }
}

/// Addons that are about to be installed into another namespace. Afterwards, the note contains only the new namespace.
fn moved(inputs: &Inputs, states: &States<'_>, phase: AddonPhase, found: &mut Findings) {
    for wanted in needed(inputs).filter(|wanted| wanted.addon.phase == phase) {
        let addon = &wanted.addon;
        let notes = states.iter().flat_map(|(_, state)| state.notes());
        let before: BTreeSet<&str> = notes
            .filter(|(name, _)| *name == addon.name)
            .filter_map(|(_, note)| Some(note.split_once('/')?.0))
            .filter(|namespace| *namespace != addon.namespace())
            .collect();
        for namespace in before {
            let name = &addon.name;
            found.warning(
                None,
                format!(
                    "the previous installation of the addon {name} stays in the namespace {namespace}, in \
                     addition to the current one in {}",
                    addon.namespace()
                ),
                format!(
                    "remove the previous one: `helm -n {namespace} uninstall {name}`, or `kubectl delete` \
                     for its manifests"
                ),
            );
        }
    }
}
