//! Types from which tasks are built: the command, its inputs, and the trait of capabilities.

pub(crate) mod actions;
pub(crate) mod capability;
pub(crate) mod cluster;
pub(crate) mod command;
pub(crate) mod endpoint;
pub(crate) mod inputs;
pub(crate) mod kubeadm;
pub(crate) mod offline;
pub(crate) mod options;
