//! Options of `kk version`.

use clap::{Args, ValueEnum};

/// Options of `kk version`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  kk version
  kk version -o json
  kk version --show-supported-k8s")]
pub struct Version {
    /// Output format [default: text]
    #[arg(short, long, value_name = "FORMAT")]
    pub output: Option<VersionFormat>,

    /// List the Kubernetes versions with known checksums, one per line
    #[arg(long, conflicts_with = "output")]
    pub show_supported_k8s: bool,
}

/// Forms of `kk version`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum VersionFormat {
    /// A JSON object
    Json,
    /// The same in YAML
    Yaml,
    /// Only the version number
    Short,
}
