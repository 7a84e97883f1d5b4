//! Images, pulled in the order of need while etcd and the control plane start.

mod pull;
mod pull_addon_images;
mod pull_control_plane_images;
mod pull_node_images;

use kk_engine::Module;

use crate::Target;

/// Up to three pulls a host, one after the other beside the lane; each provides what somebody waits for.
pub(crate) fn module(target: &Target) -> Module {
    if target.options.skip_pull_images {
        return Module::skipped("images", "--skip-pull-images is given");
    }
    Module::new(
        "images",
        vec![
            pull_control_plane_images::task(target),
            pull_node_images::task(target),
            pull_addon_images::task(target),
        ],
    )
}
