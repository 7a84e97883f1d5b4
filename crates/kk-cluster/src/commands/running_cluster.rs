//! Checks for commands on a running cluster: `kk add nodes`, `kk delete node`, `kk certs renew`.

use crate::{base::findings::Findings, capabilities::control_plane, model::inputs::Inputs};

/// The blockers for commands that need a running cluster that matches the file, in addition to the blockers for a create.
pub(crate) fn findings(inputs: &Inputs, found: &mut Findings) {
    let first = "run kk create cluster first";
    if !inputs.is_initialised() {
        found.error(None, "there is no running cluster", first);
    } else if !inputs.state.answered {
        found.error(inputs.api_host, "its API does not answer", format!("{first}: it restores the API"));
    } else if control_plane::settings_are_changed(inputs) {
        found.error(
            None,
            "the file also changes settings of the cluster",
            format!("{first}: it applies them to the existing nodes"),
        );
    }
}
