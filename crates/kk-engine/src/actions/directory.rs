//! A directory with its attributes.

use kk_connector::quote;

use super::{attributes::Attributes, hints};
use crate::{Action, Apply, Change, Facts, ProbeSpec, Script};

/// A directory with these attributes; missing parents are created, 0755 and owned by root.
#[derive(Clone, Debug)]
pub struct Directory {
    path: String,
    attributes: Attributes,
}

impl Directory {
    /// A directory of root, 0755.
    pub fn new(path: impl Into<String>) -> Self {
        Self { path: path.into(), attributes: Attributes::of_root(0o755) }
    }

    /// Sets the permission bits.
    #[must_use]
    pub fn mode(mut self, mode: u32) -> Self {
        self.attributes.mode = mode;
        self
    }

    /// Sets the owner, `user:group`.
    #[must_use]
    pub fn owner(mut self, owner: impl Into<String>) -> Self {
        self.attributes.owner = owner.into();
        self
    }
}

impl Action for Directory {
    fn check(&self, facts: &Facts) -> Change {
        match facts.files.get(&self.path).filter(|file| file.kind == "dir" || file.kind == "link") {
            // The administrator has moved the directory elsewhere and decides about its attributes.
            Some(file) if file.kind == "link" => Change::None,
            None => Change::needed(format!("make directory {}", self.path)),
            Some(file) if self.attributes.fit(file) => Change::None,
            Some(_) => Change::needed(format!("set {} to {}", self.path, self.attributes)),
        }
    }

    fn apply(&self, _facts: &Facts) -> Apply {
        let (path, attributes) = (quote(&self.path), self.attributes.words());
        Apply::Script(Script::new(format!("kk_dir {path} {attributes}\n")))
    }

    fn asks(&self, spec: &mut ProbeSpec) {
        spec.files.insert(self.path.clone());
    }

    fn hint(&self, stderr: &str) -> Option<String> {
        hints::at_path(&self.path, stderr)
    }
}
