//! KubeSphere on the cluster.

use std::path::PathBuf;

use super::ImageName;
use serde_json::{Map, Value};

/// The parts that kk deploys: ks-installer, and the `ClusterConfiguration` that it reads.
#[derive(Debug, Clone, PartialEq)]
pub struct KubeSphere {
    /// The version that the payload must have, with a leading v; `None` permits any.
    pub version: Option<String>,
    /// The source of ks-installer. `None`: the file does not set it, and nothing can be installed.
    pub image: Option<InstallerImage>,
    /// Registry of the components' images, if the file sets one for them.
    pub registry: Option<String>,
    /// `spec` of the `ClusterConfiguration`, with the keys of the current version.
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
