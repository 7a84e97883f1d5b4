//! Commands: each builds its plan from capabilities, in a file or directory of its own.

pub(crate) mod add_nodes;
pub(crate) mod create_cluster;
mod create_manifest;
pub(crate) mod delete_cluster;
pub(crate) mod delete_nodes;
pub(crate) mod etcd;
pub(crate) mod precheck;
pub(crate) mod probe;
pub(crate) mod registry;
pub(crate) mod renew_certificates;
pub(crate) mod rotate_ca;
mod running_cluster;
pub(crate) mod session;
pub(crate) mod status;
pub(crate) mod upgrade;

#[cfg(test)]
mod tests;
