//! What the spec may say about an extension: `extensions.<name>`, with these keys.

use serde_json::Value;

/// Whether it is wanted; definitions ask for it.
pub(crate) const ENABLED: &str = "enabled";
/// Its version.
pub(crate) const VERSION: &str = "version";
/// Its values.
pub(crate) const CONFIG: &str = "config";
/// Clusters that get the part of it that runs in each cluster.
pub(crate) const CLUSTERS: &str = "clusters";

/// Paths of the spec that every extension of this name reads, whatever its definition says.
pub(super) fn inputs(name: &str) -> [String; 2] {
    [format!("extensions.{name}"), "multicluster.hostClusterName".to_owned()]
}

/// The name that the cluster of the installer has among those of KubeSphere; that of the chart ks-core when the spec says none.
pub(crate) fn host_of(spec: &Value) -> &str {
    let name = spec["multicluster"]["hostClusterName"].as_str();
    name.filter(|name| !name.is_empty()).unwrap_or("host")
}
