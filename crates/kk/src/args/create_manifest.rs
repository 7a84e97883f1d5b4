//! Options of `kk create manifest`.

use std::path::PathBuf;

use clap::Args;
use kk_config::KubeVersion;

use super::versions_given;

const EXAMPLES: &str = "\
Examples:
  kk create manifest -f cluster.yaml                    only the files that this cluster needs
  kk create manifest --with-kubernetes v1.35.4,v1.36.0 --arch amd64,arm64
  kk create manifest --kubeconfig ~/.kube/config        the versions and images of a running cluster

`kk artifact export` makes a bundle from the manifest.";

/// Options of `kk create manifest`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct CreateManifest {
    /// Configuration file of the cluster, or - for stdin
    #[arg(short, long, value_name = "FILE", required_unless_present_any = ["with_kubernetes", "kubeconfig"])]
    pub filename: Option<PathBuf>,

    /// Instead of a file, query a running cluster by kubectl: versions, running images, operating systems
    #[arg(long, value_name = "FILE", conflicts_with_all = ["filename", "arch"])]
    pub kubeconfig: Option<PathBuf>,

    /// Kubernetes versions, separated by commas; with -f, instead of the one in the file
    #[arg(long, value_name = "VERSION", value_delimiter = ',', value_parser = versions_given::kubernetes)]
    pub with_kubernetes: Vec<KubeVersion>,

    /// Architectures of hosts that do not set `arch` in the file
    #[arg(long, value_name = "ARCH", value_delimiter = ',', default_value = "amd64")]
    pub arch: Vec<ArchName>,

    /// Also list the registry that `kk init registry` sets up
    #[arg(long)]
    pub with_registry: bool,

    /// File to write, or - for stdout
    #[arg(short, long, value_name = "FILE", default_value = "manifest.yaml")]
    pub output: PathBuf,

    /// Overwrite the file if it exists
    #[arg(short = 'y', long = "yes", visible_alias = "force")]
    pub overwrite: bool,
}

/// An architecture of hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
#[expect(missing_docs, reason = "the names say all")]
pub enum ArchName {
    Amd64,
    Arm64,
}
