//! What speaks against addons before the first change, and what stays of those that the file does not name any more.

use super::state;
use crate::{findings::Findings, host_layout::NOTES, inputs::Inputs};

pub(super) fn findings(inputs: &Inputs, found: &mut Findings) {
    for addon in &inputs.addons {
        found.0.extend(addon.problems.iter().cloned());
    }
    let noted = state::of(inputs).unwrap_or_default().noted;
    for name in noted.iter().filter(|name| inputs.spec.addons.iter().all(|addon| addon.name != **name)) {
        found.warning(
            None,
            format!("the addon {name} is not in the file any more, and stays as it is"),
            format!(
                "remove it by `helm uninstall` or `kubectl delete`, and {NOTES}/addon-{name} on {}",
                inputs.api_host.name
            ),
        );
    }
}
