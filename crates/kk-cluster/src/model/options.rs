//! Choices of one run that are not in the Cluster file.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use kk_artifact::bundle::Bundle;
use kk_config::Host;

/// Choices of one run that are not in the file.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Leave the pulling of images to kubeadm and the kubelet.
    pub skip_pull_images: bool,
    /// The source of binaries and images; nothing is downloaded.
    pub bundle: Option<Arc<Bundle>>,
    /// Do not uninstall KubeSphere before the hosts are cleaned.
    pub skip_kubesphere: bool,
    /// The bundle also supplies packages with the tools that a host lacks.
    pub with_packages: bool,
    /// A delete also removes the container runtime and its data.
    pub remove_runtime: bool,
    /// Leave addons as they are.
    pub skip_addons: bool,
    /// The command only shows the state of the cluster, so it downloads nothing.
    pub only_looks: bool,
    /// A manifest also lists the registry if no host of the file has its role.
    pub with_registry: bool,
}

/// How the pods of a node move to other nodes.
#[derive(Clone, Debug)]
pub struct Drain {
    /// Delete pods that no controller re-creates, and ignore disruption budgets after `timeout`.
    pub force: bool,
    /// The time limit for the move of pods.
    pub timeout: Duration,
}

/// Hosts that leave a cluster which continues without them.
#[derive(Clone, Debug)]
pub struct Leaving {
    /// Their names.
    pub names: BTreeSet<String>,
    /// How their pods move.
    pub drain: Drain,
    /// They are permanently lost: kk does not contact them.
    pub gone: bool,
}

impl Leaving {
    /// Whether a host is one of them.
    pub(crate) fn has(&self, host: &Host) -> bool {
        self.names.contains(&host.name)
    }
}
