//! A symbolic link.

use kk_connector::quote;

use super::hints;
use crate::{Action, Apply, Change, Facts, ProbeSpec, Script};

/// A symbolic link at `path` that points to `target`.
#[derive(Clone, Debug)]
pub struct Link {
    path: String,
    target: String,
}

impl Link {
    /// A link at `path` to `target`.
    pub fn new(path: impl Into<String>, target: impl Into<String>) -> Self {
        Self { path: path.into(), target: target.into() }
    }
}

impl Action for Link {
    fn check(&self, facts: &Facts) -> Change {
        if facts.files.get(&self.path).is_some_and(|file| file.kind == "link" && file.link == self.target) {
            Change::None
        } else {
            Change::needed(format!("link {} to {}", self.path, self.target))
        }
    }

    fn apply(&self, _facts: &Facts) -> Apply {
        Apply::Script(Script::new(format!("kk_link {} {}\n", quote(&self.target), quote(&self.path))))
    }

    fn asks(&self, spec: &mut ProbeSpec) {
        spec.files.insert(self.path.clone());
    }

    fn hint(&self, stderr: &str) -> Option<String> {
        hints::at_path(&self.path, stderr)
    }
}
