//! The administrator's kubeconfig: for root on the control planes, and for the person at this machine.

mod install_for_root;
mod save_kubeconfig;

use kk_engine::Module;

use crate::Target;

/// Whole or not at all, and 0600 from the first byte, everywhere.
pub(crate) fn module(target: &Target) -> Module {
    Module::new("kubeconfig", vec![install_for_root::task(target), save_kubeconfig::task(target)])
}
