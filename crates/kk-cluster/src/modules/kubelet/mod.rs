//! The kubelet: its unit, its flags, and its configuration on nodes that have joined.

mod configure_kubelet;
mod start_kubelet;
mod update_kubelet_settings;

use kk_engine::Module;

use crate::{BuildError, Target};

/// Everything about the kubelet that is not done by kubeadm.
pub(crate) fn module(target: &Target) -> Result<Module, BuildError> {
    Ok(Module::new("kubelet", vec![configure_kubelet::task(target)?]))
}

/// What keeps kubelets of nodes that have joined as they should be. Comes after the control plane, because their
/// settings are read from the cluster.
pub(crate) fn settings_module(target: &Target) -> Result<Module, BuildError> {
    Ok(Module::new(
        "kubelet-settings",
        vec![update_kubelet_settings::task(target), start_kubelet::task(target)?],
    ))
}
