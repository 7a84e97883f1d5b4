//! Describes why a component is not in its wanted state.

use crate::api::ApiError;

/// A failure of one component. The component is retried, and other components continue.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Failure {
    /// Machine-readable reason of the condition.
    pub reason: Reason,
    /// Message for users.
    pub message: String,
}

/// The kinds of failures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// The payload, a template or a chart is broken, or does not fit the spec.
    RenderFailed,
    /// The API server refused an object.
    Refused,
    /// The API server does not know a kind.
    KindMissing,
    /// The API server does not respond.
    ApiUnreachable,
    /// An object belongs to another owner.
    OwnedByAnother,
    /// A required object does not exist.
    RequirementMissing,
    /// No repository publishes the extension, or this version of it.
    NotPublished,
    /// An applied object is not ready (yet).
    NotReady,
    /// An object cannot be deleted, because no controller removes its finalizer.
    FinalizerStuck,
    /// A required component is switched off.
    DependencyDisabled,
    /// An enabled component requires this component.
    StillNeeded,
    /// The component does not support this cluster or this spec.
    NotSupported,
    /// The payload does not contain the component.
    NoDefinition,
}

impl Reason {
    /// The reason as the status contains it.
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
    /// Creates a failure with a message.
    pub fn new(reason: Reason, message: impl Into<String>) -> Self {
        Self { reason, message: message.into() }
    }

    /// Converts an error of the API server. `what` names the object or the action.
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
