//! `spec.storage`, `spec.addons` and `spec.kubesphere`.

use super::CustomScript;
use crate::Secret;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

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
pub struct Addon {
    /// Its name; that of the release of a chart.
    pub name: Option<String>,
    /// Where it is installed; `default` when absent. It is made if it is not there.
    pub namespace: Option<String>,
    /// When it is installed: `cluster` when nodes are Ready, or `network` before that, for an addon that connects pods or filters
    /// their traffic (a field of kk).
    pub phase: AddonPhase,
    /// Scripts before it.
    pub pre_install: Vec<CustomScript>,
    /// Where it comes from: a chart, manifests, or a chart and then manifests.
    pub sources: AddonSources,
    /// Scripts after it.
    pub post_install: Vec<CustomScript>,
    /// How often it is tried again when it fails; 0 when absent.
    pub retries: Option<u32>,
    /// Seconds before it is tried again; 5 when absent.
    pub delay: Option<u32>,
}

/// When an addon is installed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum AddonPhase {
    /// On a cluster whose nodes are Ready.
    #[default]
    Cluster,
    /// Before nodes are Ready, at the time of the network plugin.
    Network,
}

/// Where an addon comes from.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct AddonSources {
    /// A chart of helm.
    pub chart: AddonChart,
    /// Files with objects.
    pub yaml: AddonYaml,
}

/// A chart of helm: of a repository (`repo`, `name`, `version`), of an OCI registry (`name: oci://…`, `version`), or of the
/// control machine (`path`).
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct AddonChart {
    /// Its name in the repository, `oci://registry/path`, or below `path`.
    pub name: Option<String>,
    /// URL of a helm repository.
    pub repo: Option<String>,
    /// A packed chart, the directory of one, or with `name` the directory in which that lies; on the control machine.
    pub path: Option<String>,
    /// Its exact version. Without it, the newest stable version in `repo` is installed and kept, with a warning that names it.
    pub version: Option<String>,
    /// A file with values: a path on the control machine, or a URL.
    pub values_file: Option<String>,
    /// Single values, `key.below=value` as for helm's `--set`; they win over the file.
    pub values: Vec<Secret>,
    /// Wait until what it installs is ready, for up to five minutes.
    pub wait: Option<bool>,
}

/// Files with objects of Kubernetes.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct AddonYaml {
    /// Files of the control machine, or URLs.
    pub path: Vec<String>,
    /// Values for templates in them.
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
