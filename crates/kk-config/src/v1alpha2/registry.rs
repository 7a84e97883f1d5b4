//! `spec.registry`, as written in the file and as used by the other crates.

use crate::Secret;
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer};
use std::collections::BTreeMap;

/// Where images come from and how registries are reached.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct Registry {
    /// What kind of registry the private one is, when it is not a plain one. Into a Harbor, a push makes the projects that it lacks;
    /// kk sets up plain ones only.
    #[serde(rename = "type")]
    pub kind: Option<RegistryType>,
    /// Mirrors of docker.io, tried in this order.
    pub registry_mirrors: Vec<String>,
    /// Registries, `host[:port]`, whose certificate is not verified (KubeKey: plain HTTP, for which `plainHTTP` in `auths`
    /// is here).
    pub insecure_registries: Vec<String>,
    /// `host[:port][/path]` that replaces the registry of every image of the cluster.
    pub private_registry: Option<String>,
    /// Replaces the namespace of every image in the private registry.
    pub namespace_override: Option<String>,
    /// containerd's root directory on the hosts.
    pub containerd_data_dir: String,
    /// docker's root directory on the hosts; `/var/lib/docker` when absent.
    pub docker_data_dir: Option<String>,
    /// Directory in which the registry of the group `registry` keeps its images.
    pub registry_data_dir: String,
    /// Port on which the registry of the group `registry` takes pushes. The port in its name is read-only.
    pub registry_push_port: u16,
    /// Address of docker's bridge.
    #[serde(rename = "bridgeIP")]
    pub bridge_ip: Option<String>,
    /// Access by registry `host[:port]`.
    pub auths: BTreeMap<String, RegistryAuth>,
    /// Rewrites namespaces of images.
    pub namespace_rewrite: NamespaceRewrite,
    /// Mirrors by registry host.
    pub remote_mirrors: BTreeMap<String, RemoteMirror>,
}

impl Default for Registry {
    fn default() -> Self {
        Self {
            kind: None,
            registry_mirrors: Vec::new(),
            insecure_registries: Vec::new(),
            private_registry: None,
            namespace_override: None,
            containerd_data_dir: "/var/lib/containerd".to_owned(),
            docker_data_dir: None,
            registry_data_dir: "/mnt/registry".to_owned(),
            registry_push_port: 5443,
            bridge_ip: None,
            auths: BTreeMap::new(),
            namespace_rewrite: NamespaceRewrite::default(),
            remote_mirrors: BTreeMap::new(),
        }
    }
}

/// A kind of registry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[expect(missing_docs, reason = "names of products")]
pub enum RegistryType {
    Harbor,
    HarborHa,
}

/// How one registry is reached.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct RegistryAuth {
    /// User name; needs a password.
    pub username: Option<String>,
    /// Password or token.
    pub password: Option<Secret>,
    /// Do not verify the certificate.
    #[serde(rename = "skipTLSVerify")]
    pub skip_tls_verify: bool,
    /// Speak HTTP, not HTTPS.
    #[serde(rename = "plainHTTP")]
    pub plain_http: bool,
    /// Directory with `*.crt` (CA), `*.cert` and `*.key` (client).
    pub certs_path: Option<String>,
}

/// Rewrites namespaces of images.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct NamespaceRewrite {
    /// How.
    pub policy: Option<RewritePolicy>,
    /// Namespaces to rewrite.
    pub src: Vec<String>,
    /// What they become.
    pub dest: Option<String>,
}

/// How namespaces are rewritten.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum RewritePolicy {
    /// Replace the beginning.
    ChangePrefix,
}

/// The mirrors of one registry.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct RemoteMirror {
    /// URLs, tried in this order.
    #[serde(deserialize_with = "one_or_many")]
    #[schemars(with = "Endpoints")]
    pub endpoint: Vec<String>,
}

/// One URL or several.
#[derive(Deserialize, JsonSchema)]
#[serde(untagged)]
enum Endpoints {
    One(String),
    Many(Vec<String>),
}

fn one_or_many<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    Ok(match Endpoints::deserialize(deserializer)? {
        Endpoints::One(url) => vec![url],
        Endpoints::Many(urls) => urls,
    })
}
