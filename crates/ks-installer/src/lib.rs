//! Installs, changes and removes components of a payload as a `ClusterConfiguration` specifies.
//!
//! Data flow: [`payload`] (the available components) and the migrated and validated spec ([`spec`]) result in the desired set.
//! [`render`] creates its objects. [`engine`] compares them with its inventory and the cluster ([`api`]), and writes the
//! difference. [`operator`] does this on events, and reports by the status, Events and the log.

pub mod api;
mod canonical;
pub mod engine;
pub mod operator;
pub mod payload;
pub mod render;
pub mod rights;

pub use ks_spec as spec;
