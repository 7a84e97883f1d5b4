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

/// KubeSphere, which `kk create cluster` installs when the file has a `ClusterConfiguration` beside the Cluster, when
/// `enabled` is true, or with `--with-kubesphere`.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct KubeSphere {
    /// Whether it is installed; without it a `ClusterConfiguration` in the file decides.
    pub enabled: Option<bool>,
    /// Version that the payload must have, like `v3.4.1`; without it, the payload's.
    pub version: Option<String>,
    /// Image of ks-installer with a payload in it: its full name in a registry, or an archive of it on the control machine
    /// (a path that begins with `/` or `.`).
    pub image: Option<String>,
    /// Registry from which the components' images are pulled; without it, `spec.registry.privateRegistry`.
    pub registry: Option<String>,
    /// KubeKey's own copy of the `ClusterConfiguration`. Write it as a second document.
    pub configurations: Option<String>,
}
