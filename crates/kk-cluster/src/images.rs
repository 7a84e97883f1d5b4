//! The images of a cluster under the names by which its hosts pull them.

use kk_artifact::{Component, Image, Versions};
use kk_config::Spec;

/// Images by upstream name, or by their name in the user's private registry.
pub(crate) struct Images {
    private: Option<String>,
    namespace: Option<String>,
    versions: Versions,
}

impl Images {
    /// The images of these versions.
    pub(crate) fn new(spec: &Spec, versions: &Versions) -> Self {
        Self {
            private: spec.registry.private_registry.clone(),
            namespace: spec.registry.namespace_override.clone(),
            versions: versions.clone(),
        }
    }

    /// What stands before the last part of a name without a namespace: `registry.k8s.io`, or
    /// `private[/namespace]`.
    pub(crate) fn repository(&self, upstream: &str) -> String {
        match (&self.private, &self.namespace) {
            (None, _) => upstream.to_owned(),
            (Some(private), None) => private.clone(),
            (Some(private), Some(namespace)) => format!("{private}/{namespace}"),
        }
    }

    /// The full name of an image. In a private registry the namespace stays unless it is overridden.
    fn name(&self, image: &Image) -> String {
        if self.private.is_none() {
            return image.to_string();
        }
        let path = match (&self.namespace, image.path.rsplit_once('/')) {
            (Some(_), Some((_, last))) => last,
            _ => image.path,
        };
        format!("{}/{path}:{}", self.repository(image.registry), image.tag)
    }

    /// The image of a component, which must be one.
    pub(crate) fn of(&self, component: Component) -> String {
        self.name(&self.versions.image(component).expect("capabilities ask for images only"))
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use kk_config::{Components, KubeVersion};

    use super::*;

    fn images(private: Option<&str>, namespace: Option<&str>) -> Images {
        let mut spec = Spec::all_in_one("node1", Ipv4Addr::new(10, 0, 0, 1), KubeVersion::default()).unwrap();
        spec.registry.private_registry = private.map(str::to_owned);
        spec.registry.namespace_override = namespace.map(str::to_owned);
        let versions = Versions::for_kubernetes(spec.kubernetes.version, &Components::default()).unwrap();
        Images::new(&spec, &versions)
    }

    #[test]
    fn names_follow_the_private_registry() {
        for (private, namespace, coredns, apiserver) in [
            (None, None, "registry.k8s.io/coredns/coredns:", "registry.k8s.io/kube-apiserver:"),
            (None, Some("x"), "registry.k8s.io/coredns/coredns:", "registry.k8s.io/kube-apiserver:"),
            (Some("hub:5000"), None, "hub:5000/coredns/coredns:", "hub:5000/kube-apiserver:"),
            (Some("hub:5000"), Some("x"), "hub:5000/x/coredns:", "hub:5000/x/kube-apiserver:"),
        ] {
            let images = images(private, namespace);
            for (component, start) in [(Component::Coredns, coredns), (Component::KubeApiserver, apiserver)] {
                assert!(images.of(component).starts_with(start), "{}", images.of(component));
            }
        }
    }
}
