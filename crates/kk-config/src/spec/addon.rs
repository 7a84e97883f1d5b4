//! Charts and manifests that are installed once the cluster runs.

use std::time::Duration;

use super::{ChartSource, ManifestSource};
use crate::Secret;
use crate::v1alpha2::AddonPhase;

/// A chart or manifests to install once the cluster runs.
#[derive(Debug, Clone, PartialEq)]
pub struct Addon {
    /// Its name, unique in the file: a DNS label of at most 53 characters.
    pub name: String,
    /// The namespace in the file.
    pub namespace: Option<String>,
    /// When it is installed.
    pub phase: AddonPhase,
    /// A chart; it is installed before the manifests.
    pub chart: Option<AddonChart>,
    /// Kubernetes manifests. Without a chart there is at least one.
    pub manifests: Vec<ManifestSource>,
    /// Number of retries.
    pub retries: u32,
    /// The wait before each retry.
    pub delay: Duration,
}

impl Addon {
    /// The namespace of its release, and of objects without a namespace.
    pub fn namespace(&self) -> &str {
        self.namespace.as_deref().unwrap_or("default")
    }

    /// Whether it is installed before nodes are Ready.
    pub fn is_of_network(&self) -> bool {
        self.phase == AddonPhase::Network
    }
}

/// A chart with its values.
#[derive(Debug, Clone, PartialEq)]
pub struct AddonChart {
    /// The source of the chart.
    pub source: ChartSource,
    /// Whether the file sets no version: the newest stable version is installed, and kept.
    pub is_open: bool,
    /// An alternative source below the path of `source`, for a path that is not a chart itself.
    pub below: Option<ChartSource>,
    /// A file with values, on the control machine or a server.
    pub values_file: Option<ManifestSource>,
    /// Single values, which override the file: a JSON object.
    pub values: Option<Secret>,
    /// The single values that are secrets by their names.
    pub secrets: Vec<Secret>,
    /// Whether to wait until everything is ready.
    pub wait: bool,
}
