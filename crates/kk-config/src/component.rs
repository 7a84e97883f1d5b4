//! [`Component`]: the parts of a cluster, as one table: their kind, the place where each is published, and the key of
//! `spec.components` ([`Components`]) that pins its version.

use schemars::JsonSchema;
use serde::Deserialize;
use std::fmt;

/// The kind of a component, and where it is published.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ComponentKind {
    /// Binaries for hosts: `artifacts/NAME.yaml`.
    Program,
    /// Files with Kubernetes objects: `artifacts/NAME.yaml`.
    Manifest,
    /// A container image; its tag is `prefix` and the version.
    Image {
        /// Such as `registry.k8s.io`.
        registry: &'static str,
        /// Such as `coredns/coredns`.
        path: &'static str,
        /// Such as `v`.
        prefix: &'static str,
    },
}

/// A row of the table, except the key of the version.
struct Row {
    name: &'static str,
    title: &'static str,
    kind: ComponentKind,
}

const fn program(name: &'static str, title: &'static str) -> Row {
    Row { name, title, kind: ComponentKind::Program }
}

const fn manifest(name: &'static str, title: &'static str) -> Row {
    Row { name, title, kind: ComponentKind::Manifest }
}

const fn image(name: &'static str, registry: &'static str, path: &'static str, prefix: &'static str) -> Row {
    Row { name, title: name, kind: ComponentKind::Image { registry, path, prefix } }
}

const K8S: &str = "registry.k8s.io";
const DOCKER: &str = "docker.io";
const QUAY: &str = "quay.io";

/// Declares the components: first those with the version of Kubernetes, then the others with their keys, then those that have the
/// version of another one.
macro_rules! components {
    (
        kubernetes { $($own:ident = $own_row:expr,)* }
        pinned { $($(#[doc = $doc:literal])* $variant:ident = $row:expr, $field:ident = $key:literal;)* }
        alike { $($other:ident = $other_row:expr, $other_key:literal;)* }
    ) => {
        /// A part of a cluster that has its own version or the version of Kubernetes.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[expect(missing_docs, reason = "each variant is the program or the image of its name")]
        pub enum Component {
            $($own,)*
            $($variant,)*
            $($other,)*
        }

        /// In the order of the variants: the key of the version, and the row.
        const TABLE: &[(Component, &str, Row)] = &[
            $((Component::$own, Component::KUBERNETES, $own_row),)*
            $((Component::$variant, $key, $row),)*
            $((Component::$other, $other_key, $other_row),)*
        ];

        /// Pinned versions; in a [`crate::Spec`] without a leading `v`. An absent one takes what suits the Kubernetes version.
        #[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
        #[serde(default, deny_unknown_fields)]
        pub struct Components {
            $($(#[doc = $doc])* #[serde(rename = $key)] pub $field: Option<String>,)*
        }

        impl Components {
            /// The keys in the file.
            pub const KEYS: &'static [&'static str] = &[$($key),*];

            /// All keys, with their pinned versions.
            pub fn iter(&self) -> impl Iterator<Item = (&'static str, Option<&str>)> {
                [$(($key, self.$field.as_deref())),*].into_iter()
            }

            /// All keys, with mutable access to their versions.
            pub fn iter_mut(&mut self) -> impl Iterator<Item = (&'static str, &mut Option<String>)> {
                [$(($key, &mut self.$field)),*].into_iter()
            }
        }
    };
}

components! {
    kubernetes {
        Kubeadm = program("kubeadm", "kubeadm"),
        Kubelet = program("kubelet", "kubelet"),
        Kubectl = program("kubectl", "kubectl"),
        KubeApiserver = image("kube-apiserver", K8S, "kube-apiserver", "v"),
        KubeControllerManager = image("kube-controller-manager", K8S, "kube-controller-manager", "v"),
        KubeScheduler = image("kube-scheduler", K8S, "kube-scheduler", "v"),
        KubeProxy = image("kube-proxy", K8S, "kube-proxy", "v"),
    }
    pinned {
        /// Version of etcd, such as 3.6.14.
        Etcd = program("etcd", "etcd"), etcd = "etcd";
        /// Version of containerd.
        Containerd = program("containerd", "containerd"), containerd = "containerd";
        /// Version of runc.
        Runc = program("runc", "runc"), runc = "runc";
        /// Version of the CNI plugins.
        CniPlugins = program("cni-plugins", "CNI plugins"), cni = "cni";
        /// Version of crictl.
        Crictl = program("crictl", "crictl"), crictl = "crictl";
        /// Version of helm.
        Helm = program("helm", "helm"), helm = "helm";
        /// Version of the registry server (distribution).
        Registry = program("registry", "registry"), docker_registry = "docker-registry";
        /// Version of CoreDNS's image.
        Coredns = image("coredns", K8S, "coredns/coredns", "v"), coredns = "coredns";
        /// Version of the pause image.
        Pause = image("pause", K8S, "pause", ""), pause = "pause";
        /// Version of flannel's image.
        Flannel = image("flannel", DOCKER, "flannel/flannel", "v"), flannel = "flannel";
        /// Version of the image with flannel's CNI plugin.
        FlannelCniPlugin = image("flannel-cni-plugin", DOCKER, "flannel/flannel-cni-plugin", "v"),
            flannel_cni_plugin = "flannelCniPlugin";
        /// Tag of haproxy's image, such as 3.2.22-alpine.
        Haproxy = image("haproxy", DOCKER, "library/haproxy", ""), haproxy = "haproxy";
        /// Version of kube-vip's image.
        KubeVip = image("kube-vip", "ghcr.io", "kube-vip/kube-vip", "v"), kube_vip = "kubeVip";
        /// Version of Cilium, of its chart and of its images.
        Cilium = image("cilium", QUAY, "cilium/cilium", "v"), cilium = "cilium";
        /// Version of Calico.
        Calico = manifest("calico", "Calico"), calico = "calico";
    }
    alike {
        CiliumOperator = image("cilium-operator", QUAY, "cilium/operator-generic", "v"), "cilium";
    }
}

impl Component {
    /// The key of the version of Kubernetes itself; all others are keys of `spec.components`.
    pub const KUBERNETES: &'static str = "kubernetes";

    fn row(self) -> &'static Row {
        &TABLE[self as usize].2
    }

    /// All components.
    pub fn all() -> impl Iterator<Item = Self> {
        TABLE.iter().map(|(component, ..)| *component)
    }

    /// The components that are binaries for hosts.
    pub fn programs() -> impl Iterator<Item = Self> {
        Self::all().filter(|component| component.kind() == ComponentKind::Program)
    }

    /// The components that are published as files with Kubernetes objects.
    pub fn manifests() -> impl Iterator<Item = Self> {
        Self::all().filter(|component| component.kind() == ComponentKind::Manifest)
    }

    /// The parts of every cluster whose version is not the version of Kubernetes.
    pub fn versioned() -> impl Iterator<Item = Self> {
        let others = [Self::Helm, Self::Registry, Self::CiliumOperator];
        Self::all().filter(move |component| {
            component.version_key() != Self::KUBERNETES && !others.contains(component)
        })
    }

    /// The name in catalogues and in the store, such as `cni-plugins`.
    pub fn name(self) -> &'static str {
        self.row().name
    }

    /// The name for people: "CNI plugins".
    pub fn title(self) -> &'static str {
        self.row().title
    }

    /// The key by which its version is known: [`Component::KUBERNETES`], or a key of `spec.components`.
    pub fn version_key(self) -> &'static str {
        TABLE[self as usize].1
    }

    /// The kind of the component, and where it is published.
    pub fn kind(self) -> ComponentKind {
        self.row().kind
    }

    /// For an image: its name without tag, and the prefix of the version in its tag.
    pub fn repository(self) -> Option<(String, &'static str)> {
        match self.kind() {
            ComponentKind::Program | ComponentKind::Manifest => None,
            ComponentKind::Image { registry, path, prefix } => Some((format!("{registry}/{path}"), prefix)),
        }
    }

    /// The component whose binary has this name.
    pub fn program(name: &str) -> Option<Self> {
        Self::programs().find(|component| component.name() == name)
    }

    /// The components with a file in `artifacts/`: binaries and manifests.
    pub fn published() -> impl Iterator<Item = Self> {
        Self::programs().chain(Self::manifests())
    }
}

impl fmt::Display for Component {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_component_is_found_by_its_position_and_has_a_name_of_its_own() {
        let mut names: Vec<_> = Component::all().map(Component::name).collect();
        for (position, (component, ..)) in TABLE.iter().enumerate() {
            assert_eq!(*component as usize, position);
        }
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), TABLE.len());
    }

    #[test]
    fn parts_with_a_version_of_their_own_are_found_by_their_keys() {
        let names: Vec<_> = Component::versioned().map(Component::name).collect();
        assert!(names.contains(&"etcd") && names.contains(&"coredns"), "{names:?}");
        for other in ["kubelet", "kube-proxy", "registry", "helm", "cilium-operator"] {
            assert!(!names.contains(&other), "{other}");
        }
    }

    #[test]
    fn finds_a_program_by_its_name() {
        for component in Component::programs() {
            assert_eq!(Component::program(component.name()), Some(component));
        }
        assert_eq!(Component::program("docker"), None);
        assert_eq!(Component::program("pause"), None, "an image is no program");
        assert_eq!(Component::program("calico"), None, "a manifest is no program");
    }
}
