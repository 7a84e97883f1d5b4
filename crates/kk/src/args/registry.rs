//! Options of the commands about the registry.

use std::path::PathBuf;

use clap::Args;

use super::cluster::{RunOptions, SourceOptions};

const INIT_EXAMPLES: &str = "\
Examples:
  kk init registry -f cluster.yaml                       on the host of the role group registry
  kk init registry -f cluster.yaml -a kk-bundle.tar.zst --public-key minisign.pub
  kk artifact images push -f cluster.yaml -a kk-bundle.tar.zst --public-key minisign.pub
  kk create cluster -f cluster.yaml                      nodes trust it, and pull from it

The name and port are those of spec.registry.privateRegistry, user and password those of
spec.registry.auths. Its CA and certificate are made by kk, in the directory registry of the cluster
below --workdir.";

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
  kk delete registry -f cluster.yaml --with-data    remove its images, too

Nodes that pull from it cannot do so afterwards.";

/// Options of `kk delete registry`.
#[derive(Debug, Args)]
#[command(after_help = DELETE_EXAMPLES)]
pub struct DeleteRegistry {
    /// Configuration file of the cluster, or - for stdin
    #[arg(short, long, value_name = "FILE")]
    pub filename: PathBuf,

    /// Remove its images, too
    #[arg(long)]
    pub with_data: bool,

    #[command(flatten)]
    #[expect(missing_docs, reason = "documented at the type")]
    pub run: RunOptions,
}
