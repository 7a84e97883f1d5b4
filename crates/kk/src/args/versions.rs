//! Options of `kk versions`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::cluster::OutputFormat;

/// `kk versions …`
#[derive(Debug, Subcommand)]
pub enum Versions {
    /// List what can be installed, and which versions of it have known checksums
    List(ListVersions),
    /// Show which version of everything goes with a version of Kubernetes
    Show(ShowVersions),
    /// Add versions with their checksums to a catalogue of your own
    Add(AddVersions),
}

/// The form of an answer, and what it is made of.
#[derive(Debug, Args)]
pub struct CatalogueOptions {
    /// A catalogue of your own, which wins over the built-in one (as spec.download.catalogue)
    #[arg(long, value_name = "FILE")]
    pub catalogue: Option<PathBuf>,

    /// For people, or one JSON document
    #[arg(short, long, value_name = "FORMAT", default_value = "text")]
    pub output: OutputFormat,
}

/// Options of `kk versions list`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  kk versions list               a line a program
  kk versions list containerd    all its versions
  kk versions list -o json")]
pub struct ListVersions {
    /// Only the versions of this program
    #[arg(value_name = "PROGRAM")]
    pub program: Option<String>,

    #[command(flatten)]
    #[expect(missing_docs, reason = "documented at the type")]
    pub from: CatalogueOptions,
}

/// Options of `kk versions show`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  kk versions show            of the default version
  kk versions show v1.37.1

A file that names other versions under spec.components gets these.")]
pub struct ShowVersions {
    /// Kubernetes version
    #[arg(value_name = "VERSION")]
    pub kubernetes: Option<String>,

    #[command(flatten)]
    #[expect(missing_docs, reason = "documented at the type")]
    pub from: CatalogueOptions,
}

/// Options of `kk versions add`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  kk versions add --file new.yaml --catalogue catalogue.yaml

new.yaml holds the sums of the files as they are published:
  containerd: {amd64: {2.4.2: 0123…}}
The catalogue is rewritten, sorted and without comments. A sum that it or kk has for a version
already is not replaced. Name it in the Cluster file: spec.download.catalogue: catalogue.yaml")]
pub struct AddVersions {
    /// File with the new versions, in the form of a catalogue
    #[arg(short, long, value_name = "FILE")]
    pub file: PathBuf,

    /// The catalogue; it is made when there is none
    #[arg(long, value_name = "FILE")]
    pub catalogue: PathBuf,
}
