//! Network plugins, a directory each. Outside of this directory a plugin is what [`capability`] returns.

mod check;
pub(crate) mod flannel;
mod none;
mod remove;
mod restart;

use kk_config::{Host, NetworkPlugin, Spec};
use kk_engine::Facts;

use crate::model::{capability::Capability, inputs::Inputs};

/// The plugins that kk installs, by their names in the file. The manifest of each has the same name.
const INSTALLED: [(&str, &dyn Capability); 1] = [("flannel", &flannel::Flannel)];

/// The plugin of the file.
pub(crate) fn capability(spec: &Spec) -> &'static dyn Capability {
    match spec.network.plugin {
        NetworkPlugin::Flannel(_) => &flannel::Flannel,
        NetworkPlugin::None => &none::NoPlugin,
    }
}

/// The nodes that get their network back in this run.
pub(crate) fn lost<'a>(inputs: &Inputs<'a>) -> Vec<&'a Host> {
    match inputs.spec.network.plugin {
        NetworkPlugin::Flannel(_) => flannel::AGENT.lacking(inputs),
        NetworkPlugin::None => Vec::new(),
    }
}

/// Whether the network of a node has shown that it works. No answer is not "yes".
pub(crate) fn works(inputs: &Inputs, host: &Host, facts: &Facts) -> bool {
    match inputs.spec.network.plugin {
        NetworkPlugin::Flannel(_) => flannel::links::work(inputs, host, facts),
        NetworkPlugin::None => true,
    }
}

/// Why a node has not said whether its network works, although it was asked.
pub(crate) fn silence(inputs: &Inputs, facts: &Facts) -> Option<String> {
    match inputs.spec.network.plugin {
        NetworkPlugin::Flannel(_) => {
            facts.answer(&flannel::links::LINKS).unanswered().map(ToString::to_string)
        }
        NetworkPlugin::None => None,
    }
}
