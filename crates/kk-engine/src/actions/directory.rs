//! A directory with its attributes.

use kk_connector::quote;

use super::hints;
use crate::{Action, Apply, Change, Facts, ProbeSpec, Script};

/// A directory with these attributes; missing parents are made, 0755 and root's.
#[derive(Clone, Debug)]
pub struct Directory {
    path: String,
    mode: u32,
    owner: String,
}

impl Directory {
    /// A directory of root's, 0755.
    pub fn new(path: impl Into<String>) -> Self {
        Self { path: path.into(), mode: 0o755, owner: "root:root".into() }
    }

    /// Sets the permission bits.
    #[must_use]
    pub fn mode(mut self, mode: u32) -> Self {
        self.mode = mode;
        self
    }

    /// Sets the owner, `user:group`.
    #[must_use]
    pub fn owner(mut self, owner: impl Into<String>) -> Self {
        self.owner = owner.into();
        self
    }
}

impl Action for Directory {
    fn check(&self, facts: &Facts) -> Change {
        match facts.files.get(&self.path).filter(|file| file.kind == "dir" || file.kind == "link") {
            // The owner of the host has put it elsewhere: its attributes are his.
            Some(file) if file.kind == "link" => Change::None,
            None => Change::needed(format!("make directory {}", self.path)),
            Some(file) if file.mode == format!("{:o}", self.mode) && file.owner == self.owner => Change::None,
            Some(_) => Change::needed(format!("set {} to {:o} {}", self.path, self.mode, self.owner)),
        }
    }

    fn apply(&self, _facts: &Facts) -> Apply {
        let (path, owner) = (quote(&self.path), quote(&self.owner));
        Apply::Script(Script::new(format!("kk_dir {path} {:o} {owner}\n", self.mode)))
    }

    fn asks(&self, spec: &mut ProbeSpec) {
        spec.files.insert(self.path.clone());
    }

    fn hint(&self, stderr: &str) -> Option<String> {
        hints::at_path(&self.path, stderr)
    }
}
