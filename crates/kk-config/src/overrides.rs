//! What the command line has in place of the file.

use crate::Components;

/// What the command line says in place of the file.
#[derive(Debug, Clone, Default)]
pub struct Overrides {
    /// `--with-kubernetes`.
    pub kubernetes_version: Option<String>,
    /// `--with-kubesphere`, with an empty text where no version is given.
    pub kubesphere_version: Option<String>,
    /// `--with-etcd` and its like.
    pub components: Components,
}
