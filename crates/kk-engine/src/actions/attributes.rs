//! Mode and owner of a file or directory.

use std::fmt;

use kk_connector::quote;

use crate::FileFact;

/// Mode and owner; the default owner is root.
#[derive(Clone, Debug)]
pub(super) struct Attributes {
    /// Permission bits.
    pub(super) mode: u32,
    /// `user:group`.
    pub(super) owner: String,
}

impl Attributes {
    /// The attributes of a file of root with these permission bits.
    pub(super) fn of_root(mode: u32) -> Self {
        Self { mode, owner: "root:root".into() }
    }

    /// Whether a file has these attributes.
    pub(super) fn fit(&self, file: &FileFact) -> bool {
        file.mode == format!("{:o}", self.mode) && file.owner == self.owner
    }

    /// As two arguments of a shell command.
    pub(super) fn words(&self) -> String {
        format!("{:o} {}", self.mode, quote(&self.owner))
    }
}

/// For people: `755 root:root`.
impl fmt::Display for Attributes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:o} {}", self.mode, self.owner)
    }
}
