//! The administrator's kubeconfig: for root and the user who logs in on the control planes, and for the person at the control machine.

mod install_for_root;
mod install_for_user;
mod remove_kubeconfig;
mod save_kubeconfig;

use std::path::{Path, PathBuf};

#[cfg(test)]
pub(crate) use {install_for_root::USABLE, install_for_user::USABLE as USABLE_BY_USER};

pub(crate) use install_for_user::MAY_BECOME_ROOT;
use kk_engine::{Action, Task};

use crate::{
    base::{error::BuildError, findings::Findings, kubeconfig::authorities_of_pem},
    model::{
        capability::{Capability, Stage},
        inputs::Inputs,
    },
};

/// Whole or not at all, and 0600 from the first byte, everywhere.
pub(crate) struct Kubeconfig;

/// Root's own on a control plane.
const ROOT: &str = "/root/.kube/config";

/// Saves the one of the control plane at which the API is asked on the control machine, where it was just changed. `ca`, PEM,
/// is a CA that it must hold.
pub(crate) fn save_again(inputs: &Inputs, ca: &str) -> Box<dyn Action> {
    let authorities = authorities_of_pem(ca.as_bytes());
    Box::new(save_kubeconfig::save(inputs, true, Some(authorities)))
}

/// The file that says from which `admin.conf` the kubeconfig of the control machine was made.
fn source_sum(directory: &Path) -> PathBuf {
    directory.join(".kubeconfig.source")
}

impl Capability for Kubeconfig {
    fn name(&self) -> &'static str {
        "kubeconfig"
    }

    fn stage(&self) -> Stage {
        Stage::Hosts
    }

    fn findings(&self, inputs: &Inputs, found: &mut Findings) {
        install_for_user::findings(inputs, found);
    }

    fn install(&self, inputs: &Inputs) -> Result<Vec<Task>, BuildError> {
        Ok(vec![
            install_for_root::task(inputs),
            install_for_user::task(inputs),
            save_kubeconfig::task(inputs),
        ])
    }

    fn remove(&self, inputs: &Inputs) -> Vec<Task> {
        vec![remove_kubeconfig::task(inputs)]
    }
}
