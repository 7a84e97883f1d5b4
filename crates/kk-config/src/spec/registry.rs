//! The sources of images and binaries.

use super::Host;
use crate::v1alpha2::{Registry, RegistryAuth};
use crate::{ImageName, Secret};
use schemars::JsonSchema;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::net::IpAddr;

/// The registry that `kk init registry` sets up on a host of the cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnRegistry<'a> {
    /// The host on which it runs.
    pub host: &'a Host,
    /// Its name or address in image names, without the port.
    pub name: &'a str,
    /// Its port, from which images are pulled.
    pub port: u16,
    /// The port to which the control machine pushes images.
    pub push_port: u16,
    /// `host[:port]`, the beginning of image names.
    pub address: String,
}

/// The default name of a registry; KubeKey's.
const DEFAULT_NAME: &str = "dockerhub.kubekey.local";

impl<'a> OwnRegistry<'a> {
    /// The registry on this host under the name of the private registry. `None`: the name is an address of another host.
    pub(crate) fn new(host: &'a Host, registry: &'a Registry) -> Option<Self> {
        let whole = registry.private_registry.as_deref().unwrap_or(DEFAULT_NAME);
        let address = whole.split_once('/').map_or(whole, |(address, _)| address);
        let is_port = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        let (name, port) = match address.rsplit_once(':') {
            Some((name, port)) if is_port(port) => (name, port.parse().ok()?),
            _ => (
                address,
                if registry.auths.get(address).is_some_and(|auth| auth.plain_http) { 80 } else { 443 },
            ),
        };
        let push_port = registry.registry_push_port;
        let own = Self { host, name, port, push_port, address: address.to_owned() };
        let is_elsewhere = |ip: IpAddr| !own.addresses().contains(&ip);
        let ip = name.trim_matches(['[', ']']).parse::<IpAddr>();
        if ip.is_ok_and(is_elsewhere) { None } else { Some(own) }
    }

    /// The addresses at which its host can be reached.
    pub fn addresses(&self) -> Vec<IpAddr> {
        let mut all = vec![IpAddr::from(self.host.internal_address)];
        all.extend(self.host.internal_address_v6.map(IpAddr::from));
        all.extend(self.host.address.parse::<IpAddr>().ok());
        all.dedup();
        all
    }

    /// Whether it has a name that its clients must be able to resolve.
    pub fn has_name(&self) -> bool {
        self.name.trim_matches(['[', ']']).parse::<IpAddr>().is_err()
    }

    /// Access to all registries. This registry is also included under [`OwnRegistry::reached_at`].
    pub fn auths(&self, registry: &Registry) -> BTreeMap<String, RegistryAuth> {
        let mut auths = registry.auths.clone();
        auths.insert(self.reached_at(), auths.get(&self.address).cloned().unwrap_or_default());
        auths
    }

    /// `host:port` at which the control machine reaches it, even without name resolution.
    pub fn reached_at(&self) -> String {
        self.at(self.port)
    }

    /// `host:port` at which the control machine pushes images.
    pub fn pushed_at(&self) -> String {
        self.at(self.push_port)
    }

    fn at(&self, port: u16) -> String {
        match self.host.address.parse::<IpAddr>() {
            Ok(IpAddr::V6(address)) => format!("[{address}]:{port}"),
            _ => format!("{}:{port}", self.host.address),
        }
    }
}

impl Registry {
    /// Whether the file requests a Harbor on the hosts of the group `registry`, instead of a plain registry.
    pub fn is_harbor(&self) -> bool {
        self.kind.is_some()
    }

    /// The name of an image in the private registry: its namespace is kept unless it is overridden. `None` without a private
    /// registry.
    pub fn private_name(&self, image: &ImageName) -> Option<ImageName> {
        let (registry, below) = match self.private_registry.as_ref()?.split_once('/') {
            Some((registry, below)) => (registry, Some(below)),
            None => (self.private_registry.as_deref()?, None),
        };
        let path = match (&self.namespace_override, image.path.rsplit_once('/')) {
            (Some(_), Some((_, last))) => last,
            _ => &image.path,
        };
        let parts: Vec<&str> =
            below.into_iter().chain(self.namespace_override.as_deref()).chain([path]).collect();
        Some(ImageName { registry: registry.to_owned(), path: parts.join("/"), ..image.clone() })
    }
}

impl RegistryAuth {
    /// User name and password; the checks ensure that both or none are set.
    pub fn credentials(&self) -> Option<Credentials<'_>> {
        Some(Credentials { username: self.username.as_deref()?, password: self.password.as_ref()? })
    }
}

/// A user name and its password.
#[derive(Debug, Clone, Copy)]
pub struct Credentials<'a> {
    /// The user name.
    pub username: &'a str,
    /// The password or token.
    pub password: &'a Secret,
}

/// Where programs come from. Everything absent: the addresses of the built-in catalogue.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct Download {
    /// Base URL below which everything is found under its host and path: `https://dl.k8s.io/release/…` becomes `<mirror>/dl.k8s.io/release/…`; without a `/` at its end.
    pub mirror: Option<String>,
    /// PEM file on the control machine with the CA of the mirror.
    pub ca_file: Option<String>,
    /// A catalogue file of your own, which wins over the built-in one.
    pub catalogue: Option<String>,
    /// Minisign public key of the author of the bundles for `-a`: the line of `minisign.pub` that begins with `RW`. Without it, `-a` needs `--public-key` or `--allow-unsigned`.
    pub public_key: Option<String>,
}

#[cfg(test)]
mod tests {
    use crate::{Overrides, Spec, load};

    fn spec(registry: &str) -> Spec {
        let text = format!(
            "apiVersion: kubekey.kubesphere.io/v1alpha2\nkind: Cluster\nmetadata: {{name: t}}\nspec:\n  hosts:\n  \
             - {{name: a, address: 192.0.2.1, internalAddress: 10.0.0.1}}\n  - {{name: b, address: 192.0.2.2}}\n  \
             roleGroups: {{etcd: [a], control-plane: [a], worker: [a], registry: [a]}}\n  registry: {registry}\n"
        );
        load("t.yaml", &text, &Overrides::default()).unwrap().spec
    }

    #[test]
    fn the_registry_of_the_cluster_is_known_by_the_name_in_front_of_images() {
        for (registry, name, port, address) in [
            ("{}", "dockerhub.kubekey.local", 443, "dockerhub.kubekey.local"),
            ("{privateRegistry: hub.local/team}", "hub.local", 443, "hub.local"),
            ("{privateRegistry: 'hub.local:5000/team'}", "hub.local", 5000, "hub.local:5000"),
            ("{privateRegistry: '10.0.0.1:5000'}", "10.0.0.1", 5000, "10.0.0.1:5000"),
            ("{privateRegistry: 192.0.2.1}", "192.0.2.1", 443, "192.0.2.1"),
            (
                "{privateRegistry: hub.local, auths: {hub.local: {plainHTTP: true}}}",
                "hub.local",
                80,
                "hub.local",
            ),
        ] {
            let spec = spec(registry);
            let own = spec.own_registry().unwrap();
            assert_eq!((own.name, own.port, own.address.as_str()), (name, port, address), "{registry}");
            assert_eq!(own.has_name(), !name.starts_with('1'), "{registry}");
            assert_eq!(own.reached_at(), format!("192.0.2.1:{port}"));
            assert_eq!(own.pushed_at(), "192.0.2.1:5443");
        }
    }

    #[test]
    fn an_address_of_another_host_and_a_harbor_are_not_set_up() {
        for registry in
            ["{privateRegistry: 192.0.2.2}", "{privateRegistry: '[fd00::1]:5000'}", "{type: harbor}"]
        {
            assert_eq!(spec(registry).own_registry(), None, "{registry}");
        }
    }
}
