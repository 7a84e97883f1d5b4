//! Images of a cluster under the names by which its hosts pull them.

use kk_artifact::{Component, Image, Versions};
use kk_config::{ImageName, Registry, Spec};

/// Images by upstream name, or by their name in the user's private registry.
pub(crate) struct Images {
    registry: Registry,
    versions: Versions,
}

impl Images {
    /// The images of these versions.
    pub(crate) fn new(spec: &Spec, versions: &Versions) -> Self {
        Self { registry: spec.registry.clone(), versions: versions.clone() }
    }

    /// The text before the last part of an image's name, if the upstream name has no namespace: `registry.k8s.io`, or
    /// `private[/namespace]`.
    pub(crate) fn repository(&self, upstream: &str) -> String {
        match (&self.registry.private_registry, &self.registry.namespace_override) {
            (None, _) => upstream.to_owned(),
            (Some(private), None) => private.clone(),
            (Some(private), Some(namespace)) => format!("{private}/{namespace}"),
        }
    }

    /// The full name of an image as hosts know it.
    fn name(&self, image: &Image) -> String {
        let upstream = full_name(image);
        self.registry.private_name(&upstream).unwrap_or(upstream).to_string()
    }

    /// The upstream name of one of these images.
    pub(crate) fn upstream(&self, name: &str) -> Option<ImageName> {
        let images = Component::all().filter_map(|component| self.versions.image(component));
        let image = images.into_iter().find(|image| self.name(image) == name)?;
        Some(full_name(&image))
    }

    /// The name of a component's image. The component must be an image.
    pub(crate) fn of(&self, component: Component) -> String {
        self.name(&self.versions.image(component).expect("capabilities ask for images only"))
    }
}

fn full_name(image: &Image) -> ImageName {
    image.to_string().parse().expect("the table has full names, which a test checks")
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
            (Some("hub/a/b"), None, "hub/a/b/coredns/coredns:", "hub/a/b/kube-apiserver:"),
            (Some("hub/a/b"), Some("x/y"), "hub/a/b/x/y/coredns:", "hub/a/b/x/y/kube-apiserver:"),
        ] {
            let images = images(private, namespace);
            for (component, start) in [(Component::Coredns, coredns), (Component::KubeApiserver, apiserver)] {
                assert!(images.of(component).starts_with(start), "{}", images.of(component));
            }
            let upstream = images.versions.image(Component::Coredns).unwrap().to_string();
            let name = images.of(Component::Coredns);
            assert_eq!(images.upstream(&name).map(|image| image.to_string()), Some(upstream));
            assert_eq!(images.upstream("docker.io/library/nginx:1"), None);
        }
    }
}
