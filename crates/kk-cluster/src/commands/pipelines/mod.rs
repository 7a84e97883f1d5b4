//! Pipelines: the work of each command, as a list of modules that fits on one screen.

pub(crate) mod add_nodes;
pub(crate) mod create_cluster;
pub(crate) mod defragment_etcd;
pub(crate) mod delete_cluster;
pub(crate) mod delete_nodes;
pub(crate) mod delete_registry;
pub(crate) mod init_registry;
pub(crate) mod renew_certificates;
pub(crate) mod restore_etcd;
pub(crate) mod rotate_ca;
pub(crate) mod running_cluster;
pub(crate) mod snapshot_etcd;
pub(crate) mod upgrade;

#[cfg(test)]
mod tests;
