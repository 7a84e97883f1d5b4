//! Errors that occur before anything runs.

use kk_engine::PlanError;

use crate::base::templates::TemplateError;

/// The reason why a plan cannot be built.
#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    /// The Cluster file, or a file that it names, is not valid. Known before any host is contacted.
    #[error("{what}")]
    Config {
        /// The mistake.
        what: String,
        /// The remedy.
        hint: Option<String>,
    },
    /// A file of the control machine cannot be used.
    #[error("{what}")]
    Local {
        /// The cause.
        what: String,
        /// The remedy.
        hint: Option<String>,
    },
    /// Hosts belong to a cluster other than the one in the file.
    #[error("{what}")]
    Foreign {
        /// The problem, with the hosts that have it.
        what: String,
        /// The remedy.
        hint: String,
    },
    /// The plan is not valid: a defect of kk.
    #[error("internal error: invalid plan: {0}")]
    Internal(#[from] PlanError),
}

impl BuildError {
    /// A mistake in the Cluster file.
    pub(crate) fn config(what: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::Config { what: what.into(), hint: Some(hint.into()) }
    }

    /// A file of the control machine that cannot be used.
    pub(crate) fn local(what: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::Local { what: what.into(), hint: Some(hint.into()) }
    }

    /// The remedy.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Config { hint, .. } | Self::Local { hint, .. } => hint.clone(),
            Self::Foreign { hint, .. } => Some(hint.clone()),
            Self::Internal(_) => Some("please report it with your file".to_owned()),
        }
    }
}

impl From<TemplateError> for BuildError {
    fn from(error: TemplateError) -> Self {
        Self::Local { what: error.to_string(), hint: None }
    }
}

impl From<kk_artifact::Error> for BuildError {
    fn from(error: kk_artifact::Error) -> Self {
        Self::Config { what: error.to_string(), hint: error.hint() }
    }
}
