//! Pull node images.

use std::time::Duration;

use kk_config::{NetworkPlugin, Role};
use kk_engine::{HostWork, Retry, Task};

use super::pull::Pull;
use crate::{Target, modules::slots};

/// What every node runs: without these it does not become ready.
pub(super) fn task(target: &Target) -> Task {
    let mut task = Task::new("pull_node_images", "Pull node images")
        .timeout(Duration::from_mins(30))
        .retry(Retry::times(3))
        .beside();
    for host in target.spec.nodes() {
        // In the order of need: a control plane's own images first.
        let before = if host.has_role(&Role::ControlPlane) {
            slots::control_plane_images(&host.name)
        } else {
            slots::runtime(&host.name)
        };
        task = task.on(
            &host.name,
            HostWork::new(vec![Box::new(Pull::new(images(target)))])
                .needs(before.key())
                .provides(slots::node_images(&host.name).key()),
        );
    }
    task
}

fn images(target: &Target) -> Vec<String> {
    let mut images = vec![target.images.pause()];
    if !target.spec.kubernetes.disable_kube_proxy {
        images.push(target.images.kube_proxy());
    }
    if matches!(target.spec.network.plugin, NetworkPlugin::Flannel(_)) {
        images.extend([target.images.flannel(), target.images.flannel_cni_plugin()]);
    }
    images
}
