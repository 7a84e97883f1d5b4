//! What hosts have answered.

use std::collections::BTreeMap;

use kk_engine::{Facts, Failure};

/// What the probe brought: the facts of hosts that answered, and why others did not.
#[derive(Debug, Default)]
pub struct Probed {
    /// Facts by host.
    pub facts: BTreeMap<String, Facts>,
    /// Hosts that gave no answer, and why.
    pub failures: BTreeMap<String, Failure>,
}
