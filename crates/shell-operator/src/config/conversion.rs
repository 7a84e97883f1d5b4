//! Entries of `kubernetesCustomResourceConversion`.

use super::fields::Fields;
use super::schedule::read_group;
use super::v1::items;

/// Conversions of one custom resource that a hook can do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConversionBinding {
    /// Name in the binding context.
    pub name: String,
    /// Name of the `CustomResourceDefinition`.
    pub crd_name: String,
    /// The single steps.
    pub rules: Vec<ConversionRule>,
    /// Kubernetes bindings whose objects the hook gets.
    pub include_snapshots_from: Vec<String>,
    /// Group that the binding belongs to.
    pub group: Option<String>,
}

/// A step from one version to another, each `v1` or `group/v1`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ConversionRule {
    /// Version of the objects the hook gets.
    pub from: String,
    /// Version of the objects the hook gives back.
    pub to: String,
}

pub(super) fn read(fields: &Fields) -> Option<ConversionBinding> {
    fields.only(&["name", "crdName", "conversions", "group", "includeSnapshotsFrom"]);
    if !fields.has("conversions") {
        fields.error("conversions", "is required");
    }
    let rules = items(fields, "conversions", read_rule);
    let include_snapshots_from = fields.filled_strings("includeSnapshotsFrom");
    let group = read_group(fields);
    let (name, crd_name) = (fields.required("name"), fields.required("crdName"));
    let (name, crd_name) = (name?.to_owned(), crd_name?.to_owned());
    Some(ConversionBinding { name, crd_name, rules, include_snapshots_from, group })
}

fn read_rule(fields: &Fields) -> Option<ConversionRule> {
    fields.only(&["fromVersion", "toVersion"]);
    let (from, to) = (fields.required("fromVersion"), fields.required("toVersion"));
    Some(ConversionRule { from: from?.to_owned(), to: to?.to_owned() })
}
