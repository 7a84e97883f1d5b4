//! Nodes of the cluster: all registered, with the labels and taints of the file, and ready to take pods.

mod let_kubelets_read_services;
mod set_labels;
mod wait_for_nodes;

use kk_engine::Module;

use crate::Target;

/// Labels and taints are there before the first pods come; those that somebody else gave stay.
pub(crate) fn module(target: &Target) -> Module {
    Module::new(
        "nodes",
        vec![
            wait_for_nodes::task(target),
            let_kubelets_read_services::task(target),
            set_labels::task(target),
        ],
    )
}
