//! Why a component is not as it should be.

use crate::api::ApiError;

/// A failure of one component: it is tried again, and the others go on.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Failure {
    /// For programs: the reason of the condition.
    pub reason: Reason,
    /// For people.
    pub message: String,
}

/// The kinds of failures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// The payload, a template or a chart is broken, or does not fit the spec.
    RenderFailed,
    /// The API server refused an object.
    Refused,
    /// The cluster does not know a kind.
    KindMissing,
    /// The API server does not answer.
    ApiUnreachable,
    /// An object belongs to somebody else.
    OwnedByAnother,
    /// Something that must be there before is not.
    RequirementMissing,
    /// No repository has the extension, or that version of it.
    NotPublished,
    /// It was applied and does not work (yet).
    NotReady,
    /// An object cannot go, because nobody does what its finalizer waits for.
    FinalizerStuck,
    /// Something that it depends on is switched off.
    DependencyDisabled,
    /// Something that is switched on depends on it.
    StillNeeded,
    /// It cannot be in this cluster, or with this spec.
    NotSupported,
    /// The payload does not have it.
    NoDefinition,
}

impl Reason {
    /// As the status says it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::RenderFailed => "RenderFailed",
            Self::Refused => "Refused",
            Self::KindMissing => "KindMissing",
            Self::ApiUnreachable => "ApiUnreachable",
            Self::OwnedByAnother => "OwnedByAnother",
            Self::RequirementMissing => "RequirementMissing",
            Self::NotPublished => "NotPublished",
            Self::NotReady => "NotReady",
            Self::FinalizerStuck => "FinalizerStuck",
            Self::DependencyDisabled => "DependencyDisabled",
            Self::StillNeeded => "StillNeeded",
            Self::NotSupported => "NotSupported",
            Self::NoDefinition => "NoDefinition",
        }
    }
}

impl Failure {
    /// A failure with its words.
    pub fn new(reason: Reason, message: impl Into<String>) -> Self {
        Self { reason, message: message.into() }
    }

    /// Something about an object, or about anything else, failed at the API server.
    pub(super) fn at(what: impl std::fmt::Display) -> impl FnOnce(ApiError) -> Self {
        move |error| {
            let reason = match &error {
                ApiError::NoKind(_) => Reason::KindMissing,
                ApiError::Refused { .. } => Reason::Refused,
                ApiError::Unreachable(_) => Reason::ApiUnreachable,
            };
            Self::new(reason, format!("{what}: {error}"))
        }
    }
}
