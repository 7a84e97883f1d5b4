//! The command line: only types for clap. The code of the commands is in `commands/`.

mod artifact;
mod certs;
mod cluster;
mod completion;
mod config_validate;
mod create_config;
mod create_manifest;
mod duration;
mod etcd;
pub mod kubekey;
mod look;
mod man_pages;
mod nodes;
mod registry;
pub mod typing;
mod upgrade;
mod version;
mod versions;
mod versions_given;

pub use artifact::{
    Artifact, ArtifactDiff, ArtifactExport, ArtifactImages, ArtifactImagesPush, ArtifactImport,
    ArtifactInspect, ArtifactMerge, ArtifactVerify, ProgressOptions, SignatureOptions,
};
pub use certs::{RenewCerts, RotateCa};
pub use cluster::{
    ContainerManager, CreateCluster, DeleteCluster, HostKeyChecking, OutputFormat, OutputOptions, RunOptions,
    SourceOptions,
};
pub use completion::{Completion, ShellName};
pub use config_validate::ConfigValidate;
pub use create_config::{CreateConfig, Style};
pub use create_manifest::{ArchName, CreateManifest};
pub use etcd::{EtcdDefrag, EtcdRestore, EtcdSnapshot, EtcdStatus};
pub use look::{CheckExpiration, LookOptions, Status};
pub use man_pages::ManPages;
pub use nodes::{AddNodes, DeleteNode};
pub use registry::{DeleteRegistry, InitRegistry};
pub use upgrade::Upgrade;
pub use version::{Version, VersionFormat};
pub use versions::{AddVersions, CatalogueOptions, ListVersions, ShowVersions, Versions};

use clap::{Parser, Subcommand};

use crate::exit::ExitStatus;

/// Installs, upgrades and removes Kubernetes clusters over SSH, as one file describes them
#[derive(Debug, Parser)]
#[command(name = "kk", version, after_help = examples_and_exit_codes(), max_term_width = 100, propagate_version = false)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Create a cluster, or a configuration file or manifest for one
    #[command(subcommand, disable_help_subcommand = true)]
    Create(Create),
    /// Set up an image registry for clusters
    #[command(subcommand, disable_help_subcommand = true)]
    Init(Init),
    /// Add nodes to a cluster
    #[command(subcommand, disable_help_subcommand = true)]
    Add(Add),
    /// Upgrade a cluster to a newer version of Kubernetes
    Upgrade(Upgrade),
    /// Remove a cluster, some of its nodes, or its registry
    #[command(subcommand, disable_help_subcommand = true)]
    Delete(Delete),
    /// Show the state of a cluster without changing anything
    Status(Status),
    /// Show and renew certificates, and replace CAs
    #[command(subcommand, disable_help_subcommand = true)]
    Certs(Certs),
    /// Make, inspect and use bundles for hosts without Internet access
    #[command(subcommand, disable_help_subcommand = true)]
    Artifact(Artifact),
    /// Inspect, back up and restore etcd, which stores the state of the cluster
    #[command(subcommand, disable_help_subcommand = true)]
    Etcd(Etcd),
    /// Check configuration files, and print their schema
    #[command(subcommand, disable_help_subcommand = true)]
    Config(Config),
    /// Print a completion script for a shell
    Completion(Completion),
    /// Write the man pages of kk, for packages
    #[command(hide = true)]
    ManPages(ManPages),
    /// Show the versions that can be installed, and add versions
    #[command(subcommand, disable_help_subcommand = true)]
    Versions(Versions),
    /// Print the version of kk and the Kubernetes version that it installs by default
    Version(Version),
}

/// `kk create …`
#[derive(Debug, Subcommand)]
pub enum Create {
    /// Create the cluster that a file describes, or repair the differences
    Cluster(CreateCluster),
    /// Write a commented configuration file to start from
    Config(CreateConfig),
    /// Write a manifest, which lists the contents of an offline bundle
    Manifest(CreateManifest),
}

/// `kk add …`
#[derive(Debug, Subcommand)]
pub enum Add {
    /// Add the nodes that are in the file but not in the cluster
    Nodes(AddNodes),
}

/// `kk delete …`
#[derive(Debug, Subcommand)]
pub enum Delete {
    /// Remove a cluster from its hosts and restore the files and settings that kk replaced
    Cluster(DeleteCluster),
    /// Remove nodes from a cluster
    #[command(alias = "nodes")]
    Node(DeleteNode),
    /// Remove the registry that kk set up; its images are kept unless --with-data is set
    Registry(DeleteRegistry),
}

/// `kk init …`
#[derive(Debug, Subcommand)]
pub enum Init {
    /// Set up an image registry on the host in the role group `registry`
    Registry(InitRegistry),
}

/// `kk certs …`
#[derive(Debug, Subcommand)]
pub enum Certs {
    /// Show when the certificates on the hosts expire
    CheckExpiration(CheckExpiration),
    /// Renew certificates before they expire
    Renew(RenewCerts),
    /// Replace the CAs of the cluster, of its front proxy and of etcd
    RotateCa(RotateCa),
}

/// `kk etcd …`
#[derive(Debug, Subcommand)]
pub enum Etcd {
    /// Show the state of the etcd members without changing anything
    Status(EtcdStatus),
    /// Take a snapshot of etcd and copy it to the control machine
    Snapshot(EtcdSnapshot),
    /// Restore the cluster from a snapshot of etcd
    Restore(EtcdRestore),
    /// Defragment etcd to release the space of deleted objects
    Defrag(EtcdDefrag),
}

/// `kk config …`
#[derive(Debug, Subcommand)]
pub enum Config {
    /// Check a configuration file without connecting to any host
    Validate(ConfigValidate),
    /// Print the JSON Schema of the configuration file, for editors
    #[command(after_help = SCHEMA_EXAMPLES)]
    Schema,
}

const EXAMPLES: &str = "\
Examples:
  kk create config --name prod                       write config-prod.yaml; then fill in your hosts
  kk config validate -f config-prod.yaml             check the file for mistakes
  kk create cluster -f config-prod.yaml --dry-run    only show what would be done
  kk create cluster -f config-prod.yaml              create the cluster, or repair it
  kk add nodes -f config-prod.yaml                   add the new nodes of the file
  kk delete cluster -f config-prod.yaml              remove the cluster";

const SCHEMA_EXAMPLES: &str = "\
Examples:
  kk config schema > kk.schema.json

Editors with the YAML language server check a file against the schema if its first line is:
  # yaml-language-server: $schema=kk.schema.json";

fn examples_and_exit_codes() -> String {
    let lines = ExitStatus::ALL.map(|status| format!("  {:<4} {}", status.code(), status.meaning()));
    format!("{EXAMPLES}\n\nExit codes:\n{}", lines.join("\n"))
}
