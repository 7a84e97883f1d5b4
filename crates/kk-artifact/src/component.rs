//! [`Component`]: everything that a cluster is made of, as one table: what it is, where it is published, and by which
//! key its version is known.

use std::fmt;

/// A part of a cluster with a version of its own, or with that of Kubernetes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[expect(missing_docs, reason = "each variant is the program or the image of its name")]
pub enum Component {
    Kubeadm,
    Kubelet,
    Kubectl,
    Etcd,
    Containerd,
    Runc,
    CniPlugins,
    Crictl,
    Helm,
    Registry,
    KubeApiserver,
    KubeControllerManager,
    KubeScheduler,
    KubeProxy,
    Coredns,
    Pause,
    Flannel,
    FlannelCniPlugin,
}

use Component as C;

/// What a component is, and where it is published.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Programs for hosts: the text of its file in `artifacts/`.
    Program { catalogue: &'static str },
    /// A container image; its tag is `prefix` and the version.
    Image { registry: &'static str, path: &'static str, prefix: &'static str },
}

/// A row of the table.
struct Row {
    component: Component,
    name: &'static str,
    title: &'static str,
    version: &'static str,
    kind: Kind,
}

/// The key of the version of Kubernetes itself; all others are keys of `spec.components`.
pub(crate) const KUBERNETES: &str = "kubernetes";

macro_rules! program {
    ($component:expr, $name:literal, $title:literal, $version:expr) => {
        Row {
            component: $component,
            name: $name,
            title: $title,
            version: $version,
            kind: Kind::Program { catalogue: include_str!(concat!("../../../artifacts/", $name, ".yaml")) },
        }
    };
}

const fn image(
    component: Component,
    name: &'static str,
    version: &'static str,
    registry: &'static str,
    path: &'static str,
    prefix: &'static str,
) -> Row {
    Row { component, name, title: name, version, kind: Kind::Image { registry, path, prefix } }
}

const K8S: &str = "registry.k8s.io";
const DOCKER: &str = "docker.io";

#[rustfmt::skip]
const TABLE: [Row; 18] = [
    //       component      name           title          version
    program!(C::Kubeadm,    "kubeadm",     "kubeadm",     KUBERNETES),
    program!(C::Kubelet,    "kubelet",     "kubelet",     KUBERNETES),
    program!(C::Kubectl,    "kubectl",     "kubectl",     KUBERNETES),
    program!(C::Etcd,       "etcd",        "etcd",        "etcd"),
    program!(C::Containerd, "containerd",  "containerd",  "containerd"),
    program!(C::Runc,       "runc",        "runc",        "runc"),
    program!(C::CniPlugins, "cni-plugins", "CNI plugins", "cni"),
    program!(C::Crictl,     "crictl",      "crictl",      "crictl"),
    program!(C::Helm,       "helm",        "helm",        "helm"),
    program!(C::Registry,   "registry",    "registry",    "docker-registry"),
    //    component                 name                       version             registry path                        tag
    image(C::KubeApiserver,         "kube-apiserver",          KUBERNETES,         K8S,     "kube-apiserver",           "v"),
    image(C::KubeControllerManager, "kube-controller-manager", KUBERNETES,         K8S,     "kube-controller-manager",  "v"),
    image(C::KubeScheduler,         "kube-scheduler",          KUBERNETES,         K8S,     "kube-scheduler",           "v"),
    image(C::KubeProxy,             "kube-proxy",              KUBERNETES,         K8S,     "kube-proxy",               "v"),
    image(C::Coredns,               "coredns",                 "coredns",          K8S,     "coredns/coredns",          "v"),
    image(C::Pause,                 "pause",                   "pause",            K8S,     "pause",                    ""),
    image(C::Flannel,               "flannel",                 "flannel",          DOCKER,  "flannel/flannel",          "v"),
    image(C::FlannelCniPlugin,      "flannel-cni-plugin",      "flannelCniPlugin", DOCKER, "flannel/flannel-cni-plugin", "v"),
];

impl Component {
    fn row(self) -> &'static Row {
        TABLE
            .iter()
            .find(|row| row.component == self)
            .expect("every component has a row, which a test checks")
    }

    /// All of them.
    pub fn all() -> impl Iterator<Item = Self> {
        TABLE.iter().map(|row| row.component)
    }

    /// Those that are programs for hosts.
    pub fn programs() -> impl Iterator<Item = Self> {
        Self::all().filter(|component| matches!(component.kind(), Kind::Program { .. }))
    }

    /// Those parts of every cluster whose version is not that of Kubernetes.
    pub fn versioned() -> impl Iterator<Item = Self> {
        let others = [C::Helm, C::Registry];
        Self::all()
            .filter(move |component| component.version_key() != KUBERNETES && !others.contains(component))
    }

    /// The name in catalogues and in the store, such as `cni-plugins`.
    pub fn name(self) -> &'static str {
        self.row().name
    }

    /// The name for people: "CNI plugins".
    pub fn title(self) -> &'static str {
        self.row().title
    }

    /// The key by which its version is known: `kubernetes`, or a key of `spec.components`.
    pub fn version_key(self) -> &'static str {
        self.row().version
    }

    pub(crate) fn kind(self) -> Kind {
        self.row().kind
    }

    /// Of an image: its name without tag, and what stands before the version in its tag.
    pub(crate) fn repository(self) -> Option<(String, &'static str)> {
        match self.kind() {
            Kind::Program { .. } => None,
            Kind::Image { registry, path, prefix } => Some((format!("{registry}/{path}"), prefix)),
        }
    }

    /// The program of this name.
    pub fn program(name: &str) -> Option<Self> {
        Self::programs().find(|component| component.name() == name)
    }
}

impl fmt::Display for Component {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use kk_config::Components;

    use super::*;

    #[test]
    fn every_component_has_one_row_and_a_version_that_can_be_pinned() {
        for (position, row) in TABLE.iter().enumerate() {
            assert_eq!(row.component as usize, position, "the rows are in the order of the variants");
            assert!(row.version == KUBERNETES || Components::KEYS.contains(&row.version), "{}", row.version);
        }
        assert_eq!(
            Component::FlannelCniPlugin as usize + 1,
            TABLE.len(),
            "the last variant has the last row"
        );
    }

    #[test]
    fn parts_with_a_version_of_their_own_are_found_by_their_keys() {
        let names: Vec<_> = Component::versioned().map(Component::name).collect();
        assert!(names.contains(&"etcd") && names.contains(&"coredns"), "{names:?}");
        for other in ["kubelet", "kube-proxy", "registry", "helm"] {
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
    }
}
