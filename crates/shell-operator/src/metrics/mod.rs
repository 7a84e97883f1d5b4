//! Metrics that hooks report, and metrics of the operator itself.
//!
//! Names and labels of hooks' metrics are known only at run time and counters keep the name that the hook gave
//! (no `_total` is added), so the families are kept in an own `Registry` that writes the Prometheus text format.

mod client;
mod operation;
mod own;
mod registry;

#[cfg(test)]
mod tests;

#[doc(hidden)]
pub use client::ClientMetrics;
pub use operation::{Action, Operation};
#[doc(hidden)]
pub use operation::{apply, parse};
#[doc(hidden)]
pub use own::{EventTimes, OperatorMetrics, RunResult, RunUsage};
pub use registry::Labels;
#[doc(hidden)]
pub use registry::{Histogram, Registry, RegistryError};
