//! `spec.storage`, `spec.addons` and `spec.kubesphere`.

use super::CustomScript;
use schemars::JsonSchema;
use serde::Deserialize;

/// Local volumes.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct Storage {
    /// `OpenEBS` local volumes.
    pub openebs: OpenEbs,
}

/// `OpenEBS` local volumes.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct OpenEbs {
    /// Directory of the volumes on each host; `/var/openebs/local` when absent.
    pub base_path: Option<String>,
}

/// A chart or manifests to install when the cluster is there.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
#[expect(missing_docs, reason = "the names say all")]
pub struct Addon {
    pub name: Option<String>,
    pub namespace: Option<String>,
    pub pre_install: Vec<CustomScript>,
    pub sources: AddonSources,
    pub post_install: Vec<CustomScript>,
    pub retries: Option<u32>,
    pub delay: Option<u32>,
}

/// Where an addon comes from.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
#[expect(missing_docs, reason = "the names say all")]
pub struct AddonSources {
    pub chart: AddonChart,
    pub yaml: AddonYaml,
}

/// A Helm chart.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
#[expect(missing_docs, reason = "Helm's own names")]
pub struct AddonChart {
    pub name: Option<String>,
    pub repo: Option<String>,
    pub path: Option<String>,
    pub version: Option<String>,
    pub values_file: Option<String>,
    pub values: Vec<String>,
    pub wait: Option<bool>,
}

/// Manifests.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct AddonYaml {
    /// Files or URLs.
    pub path: Vec<String>,
    /// Values for the templates in them.
    pub values: serde_json::Value,
}

/// KubeSphere.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
#[expect(missing_docs, reason = "the names say all")]
pub struct KubeSphere {
    pub enabled: Option<bool>,
    pub version: Option<String>,
    pub configurations: Option<String>,
}
