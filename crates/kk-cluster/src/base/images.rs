//! Images of a cluster under the names by which its hosts pull them.

use kk_artifact::{Component, Image, Versions};
use kk_config::{ImageName, Registry, Spec};

/// Images by upstream name, or by their name in the user's private registry.
pub(crate) struct Images {
    registry: Registry,
    versions: Versions,
    /// Images of published manifests.
    published: Vec<ImageName>,
}

impl Images {
    /// The images of these versions.
    pub(crate) fn new(spec: &Spec, versions: &Versions) -> Self {
        Self { registry: spec.registry.clone(), versions: versions.clone(), published: Vec::new() }
    }

    /// Adds images of published manifests.
    pub(crate) fn add(&mut self, published: Vec<ImageName>) {
        self.published.extend(published);
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
        let image = images.into_iter().find(|image| self.name(image) == name);
        let published = || self.published.iter().find(|image| self.of_published(image) == name).cloned();
        image.map(|image| full_name(&image)).or_else(published)
    }

    /// The name of an image of a published manifest. A private registry may have its content under another digest, because copies
    /// may lack platforms. Runtimes search for an image with a digest by a name without a tag.
    pub(crate) fn of_published(&self, image: &ImageName) -> String {
        match (self.registry.private_name(image), &image.digest) {
            (Some(private), _) if private.tag.is_some() => ImageName { digest: None, ..private }.to_string(),
            (Some(private), _) => private.to_string(),
            (None, Some(digest)) => format!("{}@{digest}", image.repository()),
            (None, None) => image.to_string(),
        }
    }

    /// Whether an image belongs to a published manifest, in any version and of any registry.
    pub(crate) fn is_published(&self, image: &ImageName) -> bool {
        self.published.iter().any(|published| published.path == image.path)
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

    #[test]
    fn images_of_manifests_lose_their_digest_in_a_private_registry_if_they_have_a_tag() {
        let digest = format!("sha256:{}", "0a".repeat(32));
        let (tag, both, alone) = (
            "quay.io/calico/node:v1".to_owned(),
            format!("quay.io/calico/cni:v1@{digest}"),
            format!("quay.io/calico/typha@{digest}"),
        );
        for (private, namespace, expected) in [
            (None, None, [tag.clone(), format!("quay.io/calico/cni@{digest}"), alone.clone()]),
            (
                Some("hub:5000"),
                Some("x"),
                [
                    "hub:5000/x/node:v1".into(),
                    "hub:5000/x/cni:v1".into(),
                    format!("hub:5000/x/typha@{digest}"),
                ],
            ),
        ] {
            let mut images = images(private, namespace);
            let published = [&tag, &both, &alone].map(|name| name.parse::<ImageName>().unwrap());
            images.add(published.to_vec());
            for (image, expected) in published.iter().zip(expected) {
                assert_eq!(images.of_published(image), expected);
                assert_eq!(images.upstream(&expected).as_ref(), Some(image));
            }
            assert!(images.is_published(&"docker.io/calico/node:v0".parse().unwrap()));
        }
    }
}
