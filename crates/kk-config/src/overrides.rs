//! Settings on the command line that override the file.

use crate::{Components, KubeVersion};

/// Settings on the command line that override the file.
#[derive(Debug, Clone, Default)]
pub struct Overrides {
    /// `--with-kubernetes`.
    pub kubernetes_version: Option<KubeVersion>,
    /// `--with-kubesphere`, with an empty text if no version is given.
    pub kubesphere_version: Option<String>,
    /// `--with-etcd` and similar options.
    pub components: Components,
}
