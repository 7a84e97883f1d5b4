//! `spec.components`: the one list of versions that can be pinned.

use schemars::JsonSchema;
use serde::Deserialize;

/// Declares a field for each component, and the list of all of them by key.
macro_rules! components {
    ($($(#[doc = $doc:literal])* $field:ident = $key:literal,)*) => {
        /// Pinned versions; in a [`crate::Spec`] without a leading `v`. An absent one takes what suits the Kubernetes version.
        #[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
        #[serde(default, deny_unknown_fields)]
        pub struct Components {
            $($(#[doc = $doc])* #[serde(rename = $key)] pub $field: Option<String>,)*
        }

        impl Components {
            /// The keys in the file.
            pub const KEYS: &'static [&'static str] = &[$($key),*];

            /// All keys, with the version where one is pinned.
            pub fn iter(&self) -> impl Iterator<Item = (&'static str, Option<&str>)> {
                [$(($key, self.$field.as_deref())),*].into_iter()
            }

            /// All keys, with the place of their version.
            pub fn iter_mut(&mut self) -> impl Iterator<Item = (&'static str, &mut Option<String>)> {
                [$(($key, &mut self.$field)),*].into_iter()
            }
        }
    };
}

components! {
    /// Version of etcd, such as 3.6.14.
    etcd = "etcd",
    /// Version of containerd.
    containerd = "containerd",
    /// Version of runc.
    runc = "runc",
    /// Version of the CNI plugins.
    cni = "cni",
    /// Version of crictl.
    crictl = "crictl",
    /// Version of helm.
    helm = "helm",
    /// Version of the registry server (distribution).
    docker_registry = "docker-registry",
    /// Version of flannel's image.
    flannel = "flannel",
    /// Version of the image with flannel's CNI plugin.
    flannel_cni_plugin = "flannelCniPlugin",
    /// Version of CoreDNS's image.
    coredns = "coredns",
    /// Version of the pause image.
    pause = "pause",
}
