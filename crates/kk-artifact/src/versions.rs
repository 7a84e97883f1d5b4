//! [`Versions`]: the version of every component for a version of Kubernetes, and the images of these versions.

use std::collections::BTreeMap;
use std::fmt;

use kk_config::{Component, ComponentKind, Components, KubeVersion};

/// The versions of one cluster, all without a leading v: the versions that the cluster's file sets, otherwise the defaults of
/// `artifacts/defaults.yaml`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Versions {
    /// The version of Kubernetes.
    pub kubernetes: KubeVersion,
    /// By key of `spec.components`.
    components: BTreeMap<&'static str, String>,
}

impl Versions {
    /// The versions for this Kubernetes; `pinned` overrides the defaults. `None` if Kubernetes is not supported
    /// ([`KubeVersion::is_supported`]).
    pub fn for_kubernetes(kubernetes: KubeVersion, pinned: &Components) -> Option<Self> {
        if !kubernetes.is_supported() {
            return None;
        }
        let defaults = defaults();
        let version = |(key, pin): (&'static str, Option<&str>)| {
            let version = match pin {
                Some(pin) => pin.strip_prefix('v').unwrap_or(pin),
                None => defaults.get(key)?.range(..=kubernetes.minor).next_back()?.1,
            };
            Some((key, version.to_owned()))
        };
        let components = pinned.iter().map(version).collect::<Option<_>>()?;
        Some(Self { kubernetes, components })
    }

    /// The version of a component.
    pub fn of(&self, component: Component) -> String {
        match component.version_key() {
            Component::KUBERNETES => self.kubernetes.to_string().trim_start_matches('v').to_owned(),
            key => self.components[key].clone(),
        }
    }

    /// The versions of all components except Kubernetes, by key of `spec.components`.
    pub fn components(&self) -> impl Iterator<Item = (&'static str, &str)> {
        self.components.iter().map(|(key, version)| (*key, version.as_str()))
    }

    /// The image of a component. `None` for binaries.
    pub fn image(&self, component: Component) -> Option<Image> {
        match component.kind() {
            ComponentKind::Program | ComponentKind::Manifest => None,
            ComponentKind::Image { registry, path, prefix } => {
                Some(Image { registry, path, tag: format!("{prefix}{}", self.of(component)) })
            }
        }
    }
}

/// By key of `spec.components`: the default version, starting with a minor version of Kubernetes.
type Defaults = BTreeMap<String, BTreeMap<u32, String>>;

fn defaults() -> Defaults {
    let written: BTreeMap<String, BTreeMap<String, String>> =
        serde_saphyr::from_str(include_str!("../../../artifacts/defaults.yaml"))
            .expect("the file is compiled in and checked by a test");
    let minor = |from: &str| from.strip_prefix("1.").and_then(|minor| minor.parse().ok());
    let by_minor = |versions: BTreeMap<String, String>| {
        let version = |(from, version): (String, String)| {
            (minor(&from).expect("a minor version, which a test checks"), version)
        };
        versions.into_iter().map(version).collect()
    };
    written.into_iter().map(|(key, versions)| (key, by_minor(versions))).collect()
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
    fn the_defaults_have_every_key_and_no_other() {
        let defaults = defaults();
        let mut keys = Components::KEYS.to_vec();
        keys.sort_unstable();
        assert!(defaults.keys().eq(&keys), "{:?}", defaults.keys());
    }

    #[test]
    fn a_default_holds_from_its_minor_on() {
        for (minor, etcd, pause) in [
            (28, "3.5.33", "3.9"),
            (34, "3.5.33", "3.10.1"),
            (35, "3.6.14", "3.10.1"),
            (37, "3.6.14", "3.10.2"),
        ] {
            let versions = Versions::for_kubernetes(kubernetes(minor), &Components::default()).unwrap();
            assert_eq!(
                (versions.of(Component::Etcd), versions.of(Component::Pause)),
                (etcd.into(), pause.into())
            );
        }
    }

    #[test]
    fn a_pinned_version_wins() {
        let pinned =
            Components { etcd: Some("v3.6.1".into()), pause: Some("3.7".into()), ..Components::default() };
        let versions = Versions::for_kubernetes(kubernetes(36), &pinned).unwrap();
        let of = |component| versions.of(component);
        assert_eq!(
            [of(Component::Etcd), of(Component::Pause), of(Component::Runc)],
            ["3.6.1", "3.7", "1.4.3"]
        );
        assert_eq!(of(Component::Kubelet), "1.36.0");
    }

    #[test]
    fn names_images_as_upstream_does() {
        let versions = Versions::for_kubernetes(kubernetes(36), &Components::default()).unwrap();
        for (component, name) in [
            (Component::KubeApiserver, "registry.k8s.io/kube-apiserver:v1.36.0"),
            (Component::Coredns, "registry.k8s.io/coredns/coredns:v1.14.2"),
            (Component::Pause, "registry.k8s.io/pause:3.10.2"),
            (Component::FlannelCniPlugin, "docker.io/flannel/flannel-cni-plugin:v1.7.1-flannel1"),
        ] {
            assert_eq!(versions.image(component).unwrap().to_string(), name);
        }
        assert_eq!(versions.image(Component::Kubelet), None);
    }
}
