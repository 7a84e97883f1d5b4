//! Where images and programs come from.

use crate::{ImageName, Secret};
use schemars::JsonSchema;
use serde::Deserialize;
use std::collections::BTreeMap;

/// Where images come from and how registries are reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Registry {
    /// `host[:port][/path]` that replaces the registry of every image of the cluster.
    pub private_registry: Option<String>,
    /// Replaces the namespace of every image in the private registry.
    pub namespace_override: Option<String>,
    /// Mirrors of docker.io: URLs, tried in this order.
    pub registry_mirrors: Vec<String>,
    /// `host[:port]` of registries whose certificate is not verified.
    pub insecure_registries: Vec<String>,
    /// Mirrors by registry host: URLs, tried in this order.
    pub remote_mirrors: BTreeMap<String, Vec<String>>,
    /// Access by registry `host[:port]`.
    pub auths: BTreeMap<String, RegistryAuth>,
    /// containerd's root directory on the hosts; absolute.
    pub containerd_data_dir: String,
}

impl Registry {
    /// The name of an image in the private registry: its namespace stays unless it is overridden. `None` without such a
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

/// How one registry is reached.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RegistryAuth {
    /// Both or none of user name and password.
    pub credentials: Option<Credentials>,
    /// Do not verify the certificate.
    pub skip_tls_verify: bool,
    /// Speak HTTP, not HTTPS.
    pub plain_http: bool,
    /// Directory on the control machine with `*.crt` (CA), `*.cert` and `*.key` (client).
    pub certs_path: Option<String>,
}

/// A user name and its password.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Credentials {
    /// The user name.
    pub username: String,
    /// The password or token.
    pub password: Secret,
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
}
