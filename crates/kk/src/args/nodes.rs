//! Options of the commands about single nodes.

use std::{path::PathBuf, time::Duration};

use clap::Args;

use super::cluster::{RunOptions, SourceOptions};
use super::duration;

const ADD_EXAMPLES: &str = "\
Examples:
  kk add nodes -f cluster.yaml              the nodes of the file that are not in the cluster yet
  kk add nodes -f cluster.yaml --dry-run    only show what would be done, host by host
  kk add nodes -f cluster.yaml -a kk-bundle.tar.zst --public-key minisign.pub

The nodes that are in the cluster are left as they are; they only learn the names of the new ones.";

/// Options of `kk add nodes`.
#[derive(Debug, Args)]
#[command(after_help = ADD_EXAMPLES)]
pub struct AddNodes {
    /// Configuration file that names the new nodes, too; or - for stdin
    #[arg(short, long, value_name = "FILE")]
    pub filename: PathBuf,

    #[command(flatten)]
    #[expect(missing_docs, reason = "documented at the type")]
    pub source: SourceOptions,

    /// Also install, from the bundle, packages of the system with programs that hosts lack
    #[arg(long, requires = "artifact")]
    pub with_packages: bool,

    /// Leave it to the kubelet to pull images when a pod needs them
    #[arg(long, conflicts_with = "artifact")]
    pub skip_pull_images: bool,

    #[command(flatten)]
    #[expect(missing_docs, reason = "documented at the type")]
    pub run: RunOptions,
}

const DELETE_EXAMPLES: &str = "\
Examples:
  kk delete node node3 -f cluster.yaml             move its pods away, remove it, clean the host
  kk delete node node3 node4 -f cluster.yaml       one after the other
  kk delete node node3 -f cluster.yaml --force     also pods that cannot move
  kk delete node node3 -f cluster.yaml --gone      its host is lost: only the cluster forgets it

Take the node out of the file afterwards: the next create would add it again.";

/// Options of `kk delete node`.
#[derive(Debug, Args)]
#[command(after_help = DELETE_EXAMPLES)]
pub struct DeleteNode {
    /// Names of nodes, as in the file
    #[arg(required = true, value_name = "NAME")]
    pub names: Vec<String>,

    /// Configuration file that still names the nodes, or - for stdin
    #[arg(short, long, value_name = "FILE")]
    pub filename: PathBuf,

    /// Remove the container runtime with its images and data from the hosts, too
    #[arg(short = 'A', long)]
    pub all: bool,

    /// Delete pods without a controller, and after the drain timeout those that a disruption budget keeps
    #[arg(long)]
    pub force: bool,

    /// The hosts are gone for good: do not drain and do not clean them
    #[arg(long)]
    pub gone: bool,

    /// How long the eviction of a node's pods may take
    #[arg(long, value_name = "TIME", default_value = "5m", value_parser = duration::limit)]
    pub drain_timeout: Duration,

    #[command(flatten)]
    #[expect(missing_docs, reason = "documented at the type")]
    pub run: RunOptions,
}
