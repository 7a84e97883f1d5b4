//! Options of `kk versions`.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use kk_config::KubeVersion;

use super::versions_given;

use super::cluster::OutputFormat;

/// `kk versions …`
#[derive(Debug, Subcommand)]
pub enum Versions {
    /// List the components that can be installed, with their versions that have known checksums
    List(ListVersions),
    /// Show the default versions of all components for a Kubernetes version
    Show(ShowVersions),
    /// Add versions with their checksums to your own catalogue
    Add(AddVersions),
}

/// The catalogue to read and the output format.
#[derive(Debug, Args)]
pub struct CatalogueOptions {
    /// Your own catalogue, which takes precedence over the built-in catalogue (as spec.download.catalogue)
    #[arg(long, value_name = "FILE")]
    pub catalogue: Option<PathBuf>,

    /// Output: text, or one JSON document
    #[arg(short, long, value_name = "FORMAT", default_value = "text")]
    pub output: OutputFormat,
}

/// Options of `kk versions list`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  kk versions list               one line per component
  kk versions list containerd    all versions of containerd
  kk versions list -o json")]
pub struct ListVersions {
    /// List only the versions of this component
    #[arg(value_name = "COMPONENT")]
    pub program: Option<String>,

    #[command(flatten)]
    #[expect(missing_docs, reason = "documented at the type")]
    pub from: CatalogueOptions,
}

/// Options of `kk versions show`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  kk versions show            for the default Kubernetes version
  kk versions show v1.37.1

Versions in spec.components of a configuration file take precedence over these defaults.")]
pub struct ShowVersions {
    /// Kubernetes version
    #[arg(value_name = "VERSION", value_parser = versions_given::kubernetes)]
    pub kubernetes: Option<KubeVersion>,

    #[command(flatten)]
    #[expect(missing_docs, reason = "documented at the type")]
    pub from: CatalogueOptions,
}

/// Options of `kk versions add`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  kk versions add --file new.yaml --catalogue catalogue.yaml

new.yaml contains the SHA-256 checksums of the published files:
  containerd: {amd64: {2.4.2: 0123…}}
kk sorts the catalogue and removes its comments. It never replaces a checksum that is already in
this or the built-in catalogue. To use the catalogue, add it to the configuration file:
spec.download.catalogue: catalogue.yaml")]
pub struct AddVersions {
    /// File with the new versions, in the format of a catalogue
    #[arg(short, long, value_name = "FILE")]
    pub file: PathBuf,

    /// The catalogue; it is created if it does not exist
    #[arg(long, value_name = "FILE")]
    pub catalogue: PathBuf,
}
