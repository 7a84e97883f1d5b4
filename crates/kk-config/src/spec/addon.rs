//! Charts and manifests that are installed when the cluster is there.

use std::time::Duration;

use super::{ChartSource, ManifestSource};
use crate::Secret;

/// What is installed when the cluster is there.
#[derive(Debug, Clone, PartialEq)]
pub struct Addon {
    /// Its name, unique in the file: a DNS label of at most 53 characters.
    pub name: String,
    /// The file's namespace.
    pub namespace: Option<String>,
    /// A chart; it comes before the manifests.
    pub chart: Option<AddonChart>,
    /// Files with objects. Without a chart there is at least one.
    pub manifests: Vec<ManifestSource>,
    /// How often it is tried again.
    pub retries: u32,
    /// The wait before that.
    pub delay: Duration,
}

impl Addon {
    /// The namespace of its release, and of objects that name none.
    pub fn namespace(&self) -> &str {
        self.namespace.as_deref().unwrap_or("default")
    }
}

/// A chart with its values.
#[derive(Debug, Clone, PartialEq)]
pub struct AddonChart {
    /// Where it comes from.
    pub source: ChartSource,
    /// Where it lies instead, below the path of its source, when that is no chart itself.
    pub below: Option<ChartSource>,
    /// A file of the control machine with values.
    pub values_file: Option<String>,
    /// Single values, which win over the file: a JSON object.
    pub values: Option<Secret>,
    /// Those of the single values that are secrets by their names.
    pub secrets: Vec<Secret>,
    /// Whether to wait until all is ready.
    pub wait: bool,
}
