//! `kk create cluster`.

use kk_engine::Pipeline;

use crate::{
    BuildError, Target,
    modules::{
        addons, binaries, containerd, control_plane, etcd, images, kubeconfig, kubelet, nodes, os, verify,
        workers,
    },
};

/// From bare hosts to a cluster that works; on a cluster that is there, whatever is missing or changed.
///
/// Settings are written while programs travel beside the lanes; a lane first waits for them where it starts containerd.
pub(crate) fn pipeline(target: &Target) -> Result<Pipeline, BuildError> {
    Ok(Pipeline {
        name: "create cluster".to_owned(),
        modules: vec![
            os::module(target)?,
            binaries::module(target),
            etcd::module(target)?,
            kubelet::module(target)?,
            containerd::module(target)?,
            images::module(target),
            control_plane::module(target),
            workers::module(target),
            kubelet::settings_module(target)?,
            nodes::module(target),
            addons::module(target)?,
            kubeconfig::module(target),
            verify::module(target),
        ],
    })
}
