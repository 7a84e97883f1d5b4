//! What can go wrong before anything runs.

use crate::{TemplateError, vault::VaultError};

/// A pipeline cannot be built: something on this machine is not as the file says.
#[derive(Debug, thiserror::Error)]
#[error("{what}")]
pub struct BuildError {
    /// What is wrong.
    pub what: String,
    /// What to do.
    pub hint: Option<String>,
}

impl BuildError {
    /// An error with a hint.
    pub fn new(what: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { what: what.into(), hint: Some(hint.into()) }
    }
}

impl From<TemplateError> for BuildError {
    fn from(error: TemplateError) -> Self {
        Self { what: error.to_string(), hint: None }
    }
}

impl From<VaultError> for BuildError {
    fn from(error: VaultError) -> Self {
        Self::new(
            error.to_string(),
            "the vault holds the CA of etcd: restore it from a copy; remove it only when its cluster is gone",
        )
    }
}

impl From<kk_artifact::Error> for BuildError {
    fn from(error: kk_artifact::Error) -> Self {
        Self { what: error.to_string(), hint: error.hint() }
    }
}
