//! Brings a cluster to what a `ClusterConfiguration` asks for: components of a payload are installed, changed and removed.
//!
//! The way of the data: [`payload`] (what can be installed) and the spec ([`spec`]: migrated and checked) give the desired set;
//! [`render`] makes objects of it; [`engine`] compares them with its inventory and the cluster ([`api`]) and writes the
//! difference. [`operator`] runs that on events and tells people by status, Events and the log.

pub mod api;
mod canonical;
pub mod engine;
pub mod operator;
pub mod payload;
pub mod render;
pub mod rights;

pub use ks_spec as spec;
