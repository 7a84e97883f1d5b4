//! Runs small programs ("hooks") when something happens in a Kubernetes cluster.
//!
//! Hooks written for flant/shell-operator run unchanged: the configuration they print, the files they read and
//! the files they write are the same. The layers, from the bottom:
//!
//! - pure: [`json`], [`jq`], [`duration`], [`schedule`], [`config`], [`context`], [`queue`],
//!   [`limiter`]
//! - one job each with the outside: [`hook`] (processes), [`cluster`] (watching), [`patch`] (changing objects),
//!   [`metrics`], [`log`]
//! - [`operator`] ties them together and owns the state.

pub mod cluster;
pub mod config;
pub mod context;
pub mod duration;
pub mod hook;
pub mod jq;
pub mod json;
pub mod limiter;
pub mod log;
pub mod metrics;
pub mod operator;
pub mod patch;
pub mod queue;
pub mod schedule;
pub mod webhook;
pub mod yaml;

#[cfg(test)]
mod fuzz;
