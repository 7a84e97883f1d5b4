//! Choices of one run that are not in the Cluster file.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use kk_artifact::bundle::Bundle;
use kk_config::Host;

/// Choices of one run that are not in the file.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Leave the pulling of images to kubeadm and the kubelet.
    pub skip_pull_images: bool,
    /// Programs and images come from here, and nothing is downloaded.
    pub bundle: Option<Arc<Bundle>>,
    /// A delete lets KubeSphere go with the hosts.
    pub skip_kubesphere: bool,
    /// Packages with the programs that a host lacks come from the bundle, too.
    pub with_packages: bool,
    /// A delete also removes the container runtime and its data.
    pub remove_runtime: bool,
}

/// How the pods of a node move to others.
#[derive(Clone, Debug)]
pub struct Drain {
    /// Delete pods that nobody starts again, and do not let budgets keep a node for longer than `timeout`.
    pub force: bool,
    /// How long pods may take to move.
    pub timeout: Duration,
}

/// Hosts that leave a cluster which goes on without them.
#[derive(Clone, Debug)]
pub struct Leaving {
    /// Their names.
    pub names: BTreeSet<String>,
    /// How their pods move.
    pub drain: Drain,
    /// They are gone for good: nothing is asked of them.
    pub gone: bool,
}

impl Leaving {
    /// Whether a host is one of them.
    pub(crate) fn has(&self, host: &Host) -> bool {
        self.names.contains(&host.name)
    }
}
