//! Runs small programs ("hooks") or async functions when something happens in a Kubernetes cluster.
//!
//! Hooks written for flant/shell-operator run unchanged: the configuration they print, the files they read and
//! the files they write are the same. Hooks in Rust have the same bindings and queues; begin at
//! [`operator::Operator::builder`], [`config::HookConfig::builder`] and [`hook::Input`].
//!
//! The layers, from the bottom:
//!
//! - pure: `json`, `jq`, `yaml`, `duration`, `limiter`, `schedule`, [`config`], [`context`], `queue`
//! - one job each with the outside: [`hook`] (processes), [`cluster`] (watching), [`patch`] (changing objects),
//!   [`metrics`], [`log`], `webhook`
//! - [`operator`] ties them together and owns the state; [`flags`] are its command line.
//!
//! Items without documentation are public only for the program, the tests and the benches of this crate.

pub mod cluster;
pub mod config;
pub mod context;
#[doc(hidden)]
pub mod duration;
pub mod flags;
pub mod hook;
#[doc(hidden)]
pub mod jq;
#[doc(hidden)]
pub mod json;
#[doc(hidden)]
pub mod limiter;
pub mod log;
pub mod metrics;
pub mod operator;
pub mod patch;
#[doc(hidden)]
pub mod queue;
#[doc(hidden)]
pub mod schedule;
#[doc(hidden)]
pub mod webhook;
#[doc(hidden)]
pub mod yaml;

#[cfg(test)]
mod fuzz;
