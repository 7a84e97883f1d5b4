//! The spec of a `ClusterConfiguration`: what older versions called otherwise, what is not said, what cannot be meant.
//!
//! The operator and `kk` read it by the same rules. Nothing here asks a cluster.

mod defaults;
mod migrate;
mod schema;

use serde_json::Value;

pub use migrate::migrate;
pub use schema::{Problems, check, switches};

/// The spec with defaults for what it does not say. They are not written back: a spec stays as short as its author made it.
pub fn effective(spec: &Value, status: &Value) -> Value {
    let mut spec = spec.clone();
    defaults::complete(&mut spec, status);
    spec
}

#[cfg(test)]
mod tests;
