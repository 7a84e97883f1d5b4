//! The `Manifest` document as written in the file: the contents of an offline bundle.

use super::{Metadata, RegistryAuth, RemoteMirror};
use crate::{Arch, Download};
use schemars::JsonSchema;
use serde::Deserialize;
use std::collections::BTreeMap;

/// What an offline bundle holds.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
#[schemars(extend("required" = ["apiVersion", "kind", "spec"]))]
pub struct Manifest {
    /// Always `kubekey.kubesphere.io/v1alpha2`.
    pub api_version: String,
    /// Always `Manifest`.
    pub kind: String,
    /// The name of the bundle.
    pub metadata: Metadata,
    /// Its parts.
    pub spec: ManifestSpec,
}

/// The parts of a bundle.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct ManifestSpec {
    /// Architectures of the hosts: `amd64`, `arm64`.
    pub arches: Vec<String>,
    /// Operating systems whose packages are needed.
    pub operating_systems: Vec<OperatingSystem>,
    /// Versions of Kubernetes; several for an upgrade.
    pub kubernetes_distributions: Vec<Distribution>,
    /// Versions of the other programs.
    pub components: ManifestComponents,
    /// Images by their full names: `registry/path:tag`, `registry/path@sha256:…`.
    pub images: Vec<String>,
    /// Charts of helm.
    pub charts: Vec<ManifestChart>,
    /// Files with objects of Kubernetes.
    pub manifests: Vec<ManifestFile>,
    /// How registries are reached.
    pub registry: ManifestRegistry,
    /// Where programs come from.
    pub download: Download,
}

/// An operating system.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct OperatingSystem {
    /// Its architecture; those of the manifest when absent.
    pub arch: Option<Arch>,
    /// `linux`.
    #[serde(rename = "type")]
    pub kind: Option<String>,
    /// `ID` of its os-release: `debian`.
    pub id: Option<String>,
    /// `VERSION_ID` of its os-release: `12`.
    pub version: Option<String>,
    /// Its name for people.
    pub os_image: Option<String>,
    /// Its packages.
    pub repository: Repository,
}

/// A repository of packages.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Repository {
    /// Entries of a file of sources, each `URI SUITE COMPONENT…`; those of the machine that exports when absent. With rpm:
    /// addresses of repositories.
    pub sources: Vec<String>,
    /// File of this machine with the keys that sign them; the distribution's when absent. With rpm: the keys that sign each
    /// package; it has to be named.
    pub keyring: Option<String>,
    /// An image of a disc; not used.
    pub iso: Iso,
}

/// An image of a disc.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct Iso {
    /// A file of the control machine.
    pub local_path: Option<String>,
    /// Its address.
    pub url: Option<String>,
    /// Its SHA-256.
    pub checksum: Option<String>,
}

/// A version of Kubernetes.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Distribution {
    /// Always `kubernetes`.
    #[serde(rename = "type")]
    pub kind: Option<String>,
    /// Such as `v1.36.0`.
    pub version: String,
}

/// Programs other than those of Kubernetes.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ManifestComponents {
    /// helm.
    pub helm: Option<ManifestComponent>,
    /// The CNI plugins.
    pub cni: Option<ManifestComponent>,
    /// etcd.
    pub etcd: Option<ManifestComponent>,
    /// containerd, and KubeKey's docker.
    #[serde(rename = "containerRuntimes")]
    pub container_runtimes: Vec<ContainerRuntime>,
    /// runc; what suits the newest version of Kubernetes when absent.
    pub runc: Option<ManifestComponent>,
    /// crictl.
    pub crictl: Option<ManifestComponent>,
    /// The registry server (distribution), for `kk init registry`.
    #[serde(rename = "docker-registry")]
    pub docker_registry: Option<ManifestComponent>,
    /// The manifests of Calico.
    pub calico: Option<ManifestComponent>,
    /// Harbor.
    pub harbor: Option<ManifestComponent>,
    /// docker-compose.
    #[serde(rename = "docker-compose")]
    pub docker_compose: Option<ManifestComponent>,
    /// calicoctl.
    pub calicoctl: Option<ManifestComponent>,
}

/// The versions of one program.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ManifestComponent {
    /// One version.
    pub version: Option<String>,
    /// Several.
    pub versions: Vec<String>,
}

/// A container runtime.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ContainerRuntime {
    /// Always `containerd`.
    #[serde(rename = "type")]
    pub kind: Option<String>,
    /// Its version.
    pub version: String,
}

/// A chart of helm: of a repository (`name`, `repo`, `version`), of an OCI registry (`name`, `version`), or of this machine
/// (`path`).
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ManifestChart {
    /// Its name in the repository, or `oci://registry/path`.
    pub name: Option<String>,
    /// URL of a helm repository.
    pub repo: Option<String>,
    /// Its exact version.
    pub version: Option<String>,
    /// A packed chart or the directory of one, on this machine.
    pub path: Option<String>,
}

/// A file with objects of Kubernetes: of a server (`url`), or of this machine (`path`).
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ManifestFile {
    /// Its name in the bundle; the last part of its URL or path when absent.
    pub name: Option<String>,
    /// Where it is.
    pub url: Option<String>,
    /// The SHA-256 that it must have.
    pub sha256: Option<String>,
    /// A file of this machine.
    pub path: Option<String>,
}

/// How registries are reached.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct ManifestRegistry {
    /// Mirrors of docker.io, tried in this order.
    pub registry_mirrors: Vec<String>,
    /// Registries, `host[:port]`, whose certificate is not verified.
    pub insecure_registries: Vec<String>,
    /// Access by registry `host[:port]`.
    pub auths: BTreeMap<String, RegistryAuth>,
    /// Mirrors by registry host.
    pub remote_mirrors: BTreeMap<String, RemoteMirror>,
}
