//! [`Versions`]: which version of everything goes with a version of Kubernetes, and its [`Images`].

use std::collections::BTreeMap;
use std::fmt;

use kk_config::{Components, KubeVersion};
use serde::Deserialize;

/// The versions of one cluster, all without a leading v: what the cluster's file pins, else the defaults of
/// `artifacts/defaults.yaml`, whose form is this one without `kubernetes`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
#[expect(missing_docs, reason = "each field is named after its component")]
pub struct Versions {
    #[serde(skip)]
    pub kubernetes: KubeVersion,
    pub etcd: String,
    pub containerd: String,
    pub runc: String,
    pub cni: String,
    pub crictl: String,
    pub helm: String,
    pub coredns: String,
    pub pause: String,
    pub flannel: String,
    pub flannel_cni_plugin: String,
}

impl Versions {
    /// The versions for this Kubernetes; what `pinned` names wins. `None` when the defaults do not know the minor
    /// version ([`KubeVersion::is_supported`] is then false, too).
    pub fn for_kubernetes(kubernetes: KubeVersion, pinned: &Components) -> Option<Self> {
        let mut versions = defaults().remove(&format!("{}.{}", kubernetes.major, kubernetes.minor))?;
        versions.kubernetes = kubernetes;
        for (version, pin) in [
            (&mut versions.etcd, &pinned.etcd),
            (&mut versions.containerd, &pinned.containerd),
            (&mut versions.runc, &pinned.runc),
            (&mut versions.cni, &pinned.cni),
            (&mut versions.crictl, &pinned.crictl),
            (&mut versions.helm, &pinned.helm),
            (&mut versions.coredns, &pinned.coredns),
            (&mut versions.pause, &pinned.pause),
            (&mut versions.flannel, &pinned.flannel),
            (&mut versions.flannel_cni_plugin, &pinned.flannel_cni_plugin),
        ] {
            if let Some(pin) = pin {
                pin.strip_prefix('v').unwrap_or(pin).clone_into(version);
            }
        }
        Some(versions)
    }

    /// The images of these versions.
    pub fn images(&self) -> Images {
        let kubernetes = |name| Image::new("registry.k8s.io", name, self.kubernetes.to_string());
        let v = |version: &str| format!("v{version}");
        Images {
            kube_apiserver: kubernetes("kube-apiserver"),
            kube_controller_manager: kubernetes("kube-controller-manager"),
            kube_scheduler: kubernetes("kube-scheduler"),
            kube_proxy: kubernetes("kube-proxy"),
            coredns: Image::new("registry.k8s.io", "coredns/coredns", v(&self.coredns)),
            // The tags of pause have no v.
            pause: Image::new("registry.k8s.io", "pause", self.pause.clone()),
            flannel: Image::new("docker.io", "flannel/flannel", v(&self.flannel)),
            flannel_cni_plugin: Image::new(
                "docker.io",
                "flannel/flannel-cni-plugin",
                v(&self.flannel_cni_plugin),
            ),
        }
    }
}

fn defaults() -> BTreeMap<String, Versions> {
    serde_saphyr::from_str(include_str!("../../../artifacts/defaults.yaml"))
        .expect("the file is compiled in and checked by a test")
}

/// The images that a cluster may need.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(missing_docs, reason = "each field is named after its image")]
pub struct Images {
    pub kube_apiserver: Image,
    pub kube_controller_manager: Image,
    pub kube_scheduler: Image,
    pub kube_proxy: Image,
    pub coredns: Image,
    pub pause: Image,
    pub flannel: Image,
    pub flannel_cni_plugin: Image,
}

/// An image by its upstream name, in parts, because a private registry replaces some of them. Displayed as
/// `registry/path:tag`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Image {
    /// Such as `registry.k8s.io`.
    pub registry: &'static str,
    /// Such as `coredns/coredns`.
    pub path: &'static str,
    /// Such as `v1.14.2`.
    pub tag: String,
}

impl Image {
    fn new(registry: &'static str, path: &'static str, tag: String) -> Self {
        Self { registry, path, tag }
    }
}

impl fmt::Display for Image {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}:{}", self.registry, self.path, self.tag)
    }
}

#[cfg(test)]
mod tests {
    use kk_config::{NEWEST_MINOR, OLDEST_MINOR};

    use super::*;

    fn kubernetes(minor: u32) -> KubeVersion {
        KubeVersion { major: 1, minor, patch: 0 }
    }

    #[test]
    fn knows_every_supported_minor_and_no_other() {
        let known = |minor| Versions::for_kubernetes(kubernetes(minor), &Components::default()).is_some();
        assert!((OLDEST_MINOR..=NEWEST_MINOR).all(known));
        assert!(!known(OLDEST_MINOR - 1) && !known(NEWEST_MINOR + 1));
    }

    #[test]
    fn a_pinned_version_wins() {
        let pinned =
            Components { etcd: Some("v3.6.1".into()), pause: Some("3.7".into()), ..Components::default() };
        let versions = Versions::for_kubernetes(kubernetes(36), &pinned).unwrap();
        assert_eq!((versions.etcd.as_str(), versions.pause.as_str()), ("3.6.1", "3.7"));
        assert_eq!(versions.runc, "1.4.3");
    }

    #[test]
    fn names_images_as_upstream_does() {
        let versions = Versions::for_kubernetes(kubernetes(36), &Components::default()).unwrap();
        let images = versions.images();
        for (image, name) in [
            (images.kube_apiserver, "registry.k8s.io/kube-apiserver:v1.36.0"),
            (images.coredns, "registry.k8s.io/coredns/coredns:v1.14.2"),
            (images.pause, "registry.k8s.io/pause:3.10.2"),
            (images.flannel_cni_plugin, "docker.io/flannel/flannel-cni-plugin:v1.7.1-flannel1"),
        ] {
            assert_eq!(image.to_string(), name);
        }
    }
}
