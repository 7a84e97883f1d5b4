//! Network plugins, in one directory each. Other directories use a plugin only through this module.

mod check;
pub(crate) mod flannel;
mod none;
mod remove;
mod restart;

use kk_config::{Host, NetworkPlugin, Spec};
use kk_engine::Facts;

use crate::model::{capability::Capability, inputs::Inputs};

/// The plugins that kk installs, by their names in the file. The manifest of a plugin has the same name.
const INSTALLED: [(&str, &dyn Capability); 1] = [("flannel", &flannel::Flannel)];

/// The plugin that the file specifies.
pub(crate) fn capability(spec: &Spec) -> &'static dyn Capability {
    match spec.network.plugin {
        NetworkPlugin::Flannel(_) => &flannel::Flannel,
        NetworkPlugin::None => &none::NoPlugin,
    }
}

/// The nodes whose network this run restores.
pub(crate) fn lost<'a>(inputs: &Inputs<'a>) -> Vec<&'a Host> {
    match inputs.spec.network.plugin {
        NetworkPlugin::Flannel(_) => flannel::AGENT.lacking(inputs),
        NetworkPlugin::None => Vec::new(),
    }
}

/// Whether a node has reported that its network works. A missing answer does not count as "yes".
pub(crate) fn works(inputs: &Inputs, host: &Host, facts: &Facts) -> bool {
    match inputs.spec.network.plugin {
        NetworkPlugin::Flannel(_) => flannel::links::work(inputs, host, facts),
        NetworkPlugin::None => true,
    }
}

/// Why a node that was asked about its network gave no answer.
pub(crate) fn silence(inputs: &Inputs, facts: &Facts) -> Option<String> {
    match inputs.spec.network.plugin {
        NetworkPlugin::Flannel(_) => {
            facts.answer(&flannel::links::LINKS).unanswered().map(ToString::to_string)
        }
        NetworkPlugin::None => None,
    }
}
