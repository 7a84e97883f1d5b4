//! KubeSphere on the cluster.

use std::path::PathBuf;

use super::ImageName;
use serde_json::{Map, Value};

/// What `kk` deploys: ks-installer, and the `ClusterConfiguration` that it works on.
#[derive(Debug, Clone, PartialEq)]
pub struct KubeSphere {
    /// The version that the payload must have, with a leading v; any when absent.
    pub version: Option<String>,
    /// Where ks-installer comes from. Absent: the file does not say, and nothing can be installed.
    pub image: Option<InstallerImage>,
    /// Registry of the components' images, when the file names one for them.
    pub registry: Option<String>,
    /// `spec` of the `ClusterConfiguration`, with the keys of today's version.
    pub configuration: Map<String, Value>,
}

/// The image of ks-installer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum InstallerImage {
    /// In a registry.
    Registry(ImageName),
    /// An archive on the control machine.
    Archive(PathBuf),
}
