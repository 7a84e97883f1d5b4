//! The order in which a component is removed.

use crate::api::Id;
use crate::render::{Class, class_of_kind};

/// Steps of a removal. The next one begins when everything of the one before is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// While the controllers live that their finalizers wait for.
    CustomResources,
    /// Webhooks and API services before those who answer: without an answer the API server refuses everything else.
    Registrations,
    /// What runs.
    Workloads,
    /// What they were reached by and read.
    Configuration,
    /// What they were allowed to do.
    Access,
    /// Their kinds.
    Definitions,
    /// Where they were.
    Namespaces,
}

impl Step {
    /// All, in order.
    pub(super) const ALL: [Self; 7] = [
        Self::CustomResources,
        Self::Registrations,
        Self::Workloads,
        Self::Configuration,
        Self::Access,
        Self::Definitions,
        Self::Namespaces,
    ];

    /// When an object goes.
    pub(super) fn of(id: &Id) -> Self {
        match class_of_kind(&id.api_version, &id.kind) {
            Class::Custom => Self::CustomResources,
            Class::Registration => Self::Registrations,
            Class::Workload => Self::Workloads,
            Class::Config | Class::Service => Self::Configuration,
            Class::Access => Self::Access,
            Class::Definition => Self::Definitions,
            Class::Namespace => Self::Namespaces,
        }
    }
}
