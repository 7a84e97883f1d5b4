//! The images of a cluster under the names by which its hosts pull them.

use kk_artifact::{Image, Versions};
use kk_config::Spec;

/// Images by upstream name, or by their name in the user's private registry.
pub(crate) struct Images {
    private: Option<String>,
    namespace: Option<String>,
    upstream: kk_artifact::Images,
}

impl Images {
    /// The images of these versions.
    pub(crate) fn new(spec: &Spec, versions: &Versions) -> Self {
        Self {
            private: spec.registry.private_registry.clone(),
            namespace: spec.registry.namespace_override.clone(),
            upstream: versions.images(),
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
    pub(crate) fn name(&self, image: &Image) -> String {
        if self.private.is_none() {
            return image.to_string();
        }
        let path = match (&self.namespace, image.path.rsplit_once('/')) {
            (Some(_), Some((_, last))) => last,
            _ => image.path,
        };
        format!("{}/{path}:{}", self.repository(image.registry), image.tag)
    }

    /// The sandbox of every pod.
    pub(crate) fn pause(&self) -> String {
        self.name(&self.upstream.pause)
    }

    /// What the control plane runs.
    pub(crate) fn control_plane(&self) -> Vec<String> {
        [&self.upstream.kube_apiserver, &self.upstream.kube_controller_manager, &self.upstream.kube_scheduler]
            .map(|image| self.name(image))
            .to_vec()
    }

    /// kube-proxy.
    pub(crate) fn kube_proxy(&self) -> String {
        self.name(&self.upstream.kube_proxy)
    }

    /// CoreDNS.
    pub(crate) fn coredns(&self) -> String {
        self.name(&self.upstream.coredns)
    }

    /// The daemon of flannel.
    pub(crate) fn flannel(&self) -> String {
        self.name(&self.upstream.flannel)
    }

    /// The carrier of flannel's CNI plugin.
    pub(crate) fn flannel_cni_plugin(&self) -> String {
        self.name(&self.upstream.flannel_cni_plugin)
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
            assert!(images.coredns().starts_with(coredns), "{}", images.coredns());
            assert!(images.control_plane()[0].starts_with(apiserver), "{}", images.control_plane()[0]);
        }
    }
}
