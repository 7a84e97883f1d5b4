//! Answers of hosts.

use std::collections::BTreeMap;

use kk_engine::{Facts, Failure};

/// Result of the probe: the facts of hosts that answered, and why the other hosts did not.
#[derive(Debug, Default)]
pub struct Probed {
    /// Facts by host.
    pub facts: BTreeMap<String, Facts>,
    /// Hosts that gave no answer, with the reason.
    pub failures: BTreeMap<String, Failure>,
}
