//! Defines the order in which a component is removed.

use super::federation;
use crate::api::{Id, install_plan};
use crate::render::{Class, class_of_kind};

/// Steps of a removal. A step begins when all objects of the previous step are gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// Custom resources are deleted while the controllers that remove their finalizers run.
    CustomResources,
    /// Webhooks and API services are deleted before the workloads that serve them. Without a response of these workloads, the API
    /// server refuses all other requests.
    Registrations,
    /// Workloads.
    Workloads,
    /// Configuration and Services of the workloads.
    Configuration,
    /// Permissions of the workloads.
    Access,
    /// Definitions of custom resources.
    Definitions,
    /// Namespaces of the workloads.
    Namespaces,
}

impl Step {
    /// All steps in order.
    pub(super) const ALL: [Self; 7] = [
        Self::CustomResources,
        Self::Registrations,
        Self::Workloads,
        Self::Configuration,
        Self::Access,
        Self::Definitions,
        Self::Namespaces,
    ];

    /// The step that deletes an object.
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

/// The position of a kind when objects of users are deleted before their kind; smaller numbers first. Plans of extensions are
/// deleted while their version is published, and their repositories are deleted before the published versions, which would
/// otherwise be published again. Objects that represent objects in several clusters are deleted while `KubeFed` handles their
/// kind.
pub(super) fn rank_of_instances(kind: &Id) -> u8 {
    match (kind.api_version.as_str(), kind.kind.as_str()) {
        (install_plan::API_VERSION, install_plan::KIND) => 0,
        (install_plan::API_VERSION, "Repository") => 1,
        _ if federation::is_federated(kind) => 0,
        _ if federation::is_setting(kind) => 3,
        _ => 2,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn in_order<const N: usize>(kinds: [(&str, &str); N]) -> Vec<String> {
        let mut kinds = kinds.map(|(version, kind)| Id::new(version, kind, "", ""));
        kinds.sort_by_key(rank_of_instances);
        kinds.iter().map(|id| format!("{} {}", id.api_version, id.kind)).collect()
    }

    #[test]
    fn plans_of_users_go_while_what_they_are_for_is_published() {
        let kinds = in_order([
            ("kubesphere.io/v1alpha1", "ExtensionVersion"),
            ("example.com/v1", "InstallPlan"),
            ("kubesphere.io/v1alpha1", "Repository"),
            ("kubesphere.io/v1alpha1", "InstallPlan"),
        ]);
        assert_eq!(kinds[..2], ["kubesphere.io/v1alpha1 InstallPlan", "kubesphere.io/v1alpha1 Repository"]);
    }

    #[test]
    fn what_stands_for_objects_of_other_clusters_goes_while_its_controller_works_for_it() {
        let kinds = in_order([
            ("core.kubefed.io/v1beta1", "FederatedTypeConfig"),
            ("core.kubefed.io/v1beta1", "KubeFedCluster"),
            ("scheduling.kubefed.io/v1alpha1", "ReplicaSchedulingPreference"),
            ("types.kubefed.io/v1beta1", "FederatedUser"),
            ("types.kubefed.io/v1beta2", "FederatedNamespace"),
        ]);
        let expected = [
            "types.kubefed.io/v1beta1 FederatedUser",
            "types.kubefed.io/v1beta2 FederatedNamespace",
            "scheduling.kubefed.io/v1alpha1 ReplicaSchedulingPreference",
            "core.kubefed.io/v1beta1 FederatedTypeConfig",
            "core.kubefed.io/v1beta1 KubeFedCluster",
        ];
        assert_eq!(kinds, expected);
    }
}
