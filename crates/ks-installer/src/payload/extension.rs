//! Defines the keys of the spec for an extension: `extensions.<name>`.

use serde_json::Value;

/// Whether the extension is wanted. Definitions read this key.
pub(crate) const ENABLED: &str = "enabled";
/// Version of the extension.
pub(crate) const VERSION: &str = "version";
/// Values of the extension.
pub(crate) const CONFIG: &str = "config";
/// Clusters that get the agent of the extension.
pub(crate) const CLUSTERS: &str = "clusters";

/// Paths of the spec that each extension reads, in addition to the paths in its definition.
pub(super) fn inputs(name: &str) -> [String; 2] {
    [format!("extensions.{name}"), "multicluster.hostClusterName".to_owned()]
}

/// Name of the cluster of ks-installer among the clusters of KubeSphere; the default is the name in the chart ks-core.
pub(crate) fn host_of(spec: &Value) -> &str {
    let name = spec["multicluster"]["hostClusterName"].as_str();
    name.filter(|name| !name.is_empty()).unwrap_or("host")
}
