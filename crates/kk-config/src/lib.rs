//! Reads and validates Cluster files: the wanted cluster, with every error at its position.
//!
//! The crate accesses neither disk nor network: its input is text, its output a [`Spec`] or the list of all errors.

mod component;
mod diagnostic;
mod earlier;
mod findings;
mod foreign;
mod host_range;
mod load;
mod load_manifest;
mod local_files;
mod look_alike;
mod mask;
mod normalise;
mod overrides;
mod reader;
mod sample;
mod schema;
mod secret;
mod spec;
mod typing;
pub mod v1alpha2;
mod version;
mod yaml;

pub use component::{Component, ComponentKind, Components};
pub use diagnostic::{ConfigErrors, Diagnostic, Place, Severity};
pub use load::{Loaded, is_manifest, load};
pub use load_manifest::load_manifest;
pub use local_files::LocalFile;
pub use look_alike::{LookAlike, look_alike};
pub use mask::names_secret;
pub use normalise::{KUBE_VIP_VARIABLES, component_version, go_duration};
pub use overrides::Overrides;
pub use sample::{SampleStyle, kubesphere_sample, sample};
pub use schema::schema;
pub use secret::Secret;
pub use spec::{
    Addon, AddonChart, Arch, Balancer, Bastion, Bgp, Calico, CalicoWorkload, ChartSource,
    ControlPlaneEndpoint, Credentials, Dns, Download, EncryptionAlgorithm, Etcd, Host, ImageName,
    InstallerImage, KubeSphere, KubeVip, Kubernetes, Manifest, ManifestFile, ManifestSource, Network,
    OperatingSystem, OwnRegistry, PrivateKey, ProxyMode, Registry, RegistryAuth, Role, Spec, System, Taint,
    TaintEffect, has_dnf,
};
pub use v1alpha2::{AddonPhase, NetworkPlugin};
pub use version::{DEFAULT_KUBERNETES_VERSION, InvalidVersion, KubeVersion, NEWEST_MINOR, OLDEST_MINOR};
