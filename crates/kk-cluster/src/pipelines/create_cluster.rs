//! `kk create cluster`.

use kk_engine::Pipeline;

use crate::{
    BuildError, Target,
    modules::{
        addons, binaries, containerd, control_plane, etcd, images, kubeconfig, kubelet, labels, os, verify,
        workers,
    },
};

/// From bare hosts to a cluster that works; on a cluster that is there, whatever is missing or changed.
pub(crate) fn pipeline(target: &Target) -> Result<Pipeline, BuildError> {
    Ok(Pipeline {
        name: "create cluster".to_owned(),
        modules: vec![
            os::module(target)?,
            binaries::module(target),
            etcd::module(target)?,
            containerd::module(target)?,
            images::module(target),
            kubelet::module(target)?,
            control_plane::module(target),
            workers::module(target),
            kubelet::settings_module(target),
            addons::module(target)?,
            labels::module(target),
            kubeconfig::module(target),
            verify::module(target),
        ],
    })
}
