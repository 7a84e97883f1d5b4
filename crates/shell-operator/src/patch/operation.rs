//! The operations on objects that a hook may request.

use serde_json::Value;

use crate::jq::Filter;

/// One checked operation.
#[derive(Debug, PartialEq)]
pub struct Operation {
    /// `version` or `group/version`; `None` means the preferred one.
    pub api_version: Option<String>,
    /// Kind of the object.
    pub kind: String,
    /// Its namespace; empty for cluster-wide objects.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Sub-resource to act on, like `status`.
    pub subresource: Option<String>,
    /// The action.
    pub action: Action,
    /// Whether a missing object is no error; only for patches.
    pub ignore_missing_object: bool,
    /// Whether it is done although the hook failed.
    pub ignore_hook_error: bool,
}

/// The action on an object.
#[derive(Debug, PartialEq)]
pub enum Action {
    /// Create it; an error when it is there.
    Create(Value),
    /// Create it, or leave it as it is.
    CreateIfNotExists(Value),
    /// Create it, or replace it.
    CreateOrUpdate(Value),
    /// Delete it.
    Delete(Propagation),
    /// Replace it by the result of a jq program.
    JqPatch(Filter),
    /// JSON merge patch (RFC 7396).
    MergePatch(Value),
    /// JSON patch (RFC 6902).
    JsonPatch(Value),
}

/// The treatment of the objects that the deleted one owns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Propagation {
    /// They are deleted first, and the operation waits for the end.
    Foreground,
    /// They are deleted later.
    Background,
    /// They stay.
    Orphan,
}

impl Action {
    /// Name of the operation in the file.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Create(_) => "Create",
            Self::CreateIfNotExists(_) => "CreateIfNotExists",
            Self::CreateOrUpdate(_) => "CreateOrUpdate",
            Self::Delete(Propagation::Foreground) => "Delete",
            Self::Delete(Propagation::Background) => "DeleteInBackground",
            Self::Delete(Propagation::Orphan) => "DeleteNonCascading",
            Self::JqPatch(_) => "JQPatch",
            Self::MergePatch(_) => "MergePatch",
            Self::JsonPatch(_) => "JSONPatch",
        }
    }

    pub(super) fn is_patch(&self) -> bool {
        matches!(self, Self::JqPatch(_) | Self::MergePatch(_) | Self::JsonPatch(_))
    }
}
