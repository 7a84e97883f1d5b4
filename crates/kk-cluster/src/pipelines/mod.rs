//! The pipelines: what each command does, as a list of modules that fits on one screen.

pub(crate) mod add_nodes;
pub(crate) mod create_cluster;
pub(crate) mod delete_cluster;
pub(crate) mod delete_nodes;
pub(crate) mod renew_certificates;
pub(crate) mod running_cluster;

#[cfg(test)]
mod tests;
