//! A path that must not be there.

use kk_connector::quote;

use super::hints;
use crate::{Action, Apply, Change, Facts, ProbeSpec, Script};

/// A path that must not be there.
#[derive(Clone, Debug)]
pub struct Absent {
    path: String,
    tree: bool,
}

impl Absent {
    /// A file or link that must not be there. What somebody else made is kept aside, and put back by a delete.
    pub fn new(path: impl Into<String>) -> Self {
        Self { path: path.into(), tree: false }
    }

    /// A directory tree that is removed for good, such as the data of a member that leaves.
    pub fn tree(path: impl Into<String>) -> Self {
        Self { path: path.into(), tree: true }
    }
}

impl Action for Absent {
    fn check(&self, facts: &Facts) -> Change {
        if facts.files.contains_key(&self.path) {
            Change::needed(format!("remove {}", self.path))
        } else {
            Change::None
        }
    }

    fn apply(&self, _facts: &Facts) -> Apply {
        let function = if self.tree { "kk_remove_tree" } else { "kk_absent" };
        Apply::Script(Script::new(format!("{function} {}\n", quote(&self.path))))
    }

    fn asks(&self, spec: &mut ProbeSpec) {
        spec.files.insert(self.path.clone());
    }

    fn hint(&self, stderr: &str) -> Option<String> {
        hints::at_path(&self.path, stderr)
    }
}
