//! Options of the commands about the registry.

use std::path::PathBuf;

use clap::Args;

use super::cluster::{RunOptions, SourceOptions};

const INIT_EXAMPLES: &str = "\
Examples:
  kk init registry -f cluster.yaml                       on the host in the role group `registry`
  kk init registry -f cluster.yaml -a kk-bundle.tar.zst --public-key minisign.pub
  kk artifact images push -f cluster.yaml -a kk-bundle.tar.zst --public-key minisign.pub
  kk create cluster -f cluster.yaml                      nodes trust the registry and pull from it

spec.registry.privateRegistry sets the name and port, spec.registry.auths the user and password.
kk creates a CA and a certificate for the registry, in <workdir>/<cluster>/registry.";

/// Options of `kk init registry`.
#[derive(Debug, Args)]
#[command(after_help = INIT_EXAMPLES)]
pub struct InitRegistry {
    /// Configuration file of the cluster, or - for stdin
    #[arg(short, long, value_name = "FILE")]
    pub filename: PathBuf,

    #[command(flatten)]
    #[expect(missing_docs, reason = "documented at the type")]
    pub source: SourceOptions,

    #[command(flatten)]
    #[expect(missing_docs, reason = "documented at the type")]
    pub run: RunOptions,
}

const DELETE_EXAMPLES: &str = "\
Examples:
  kk delete registry -f cluster.yaml                remove the registry, keep its images
  kk delete registry -f cluster.yaml --with-data    remove the registry and its images

Afterwards nodes can no longer pull images from it.";

/// Options of `kk delete registry`.
#[derive(Debug, Args)]
#[command(after_help = DELETE_EXAMPLES)]
pub struct DeleteRegistry {
    /// Configuration file of the cluster, or - for stdin
    #[arg(short, long, value_name = "FILE")]
    pub filename: PathBuf,

    /// Also remove its images
    #[arg(long)]
    pub with_data: bool,

    #[command(flatten)]
    #[expect(missing_docs, reason = "documented at the type")]
    pub run: RunOptions,
}
