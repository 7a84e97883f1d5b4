//! Options of the commands about single nodes.

use std::{path::PathBuf, time::Duration};

use clap::Args;

use super::cluster::{RunOptions, SourceOptions};
use super::duration;

const ADD_EXAMPLES: &str = "\
Examples:
  kk add nodes -f cluster.yaml              add the new nodes of the file
  kk add nodes -f cluster.yaml --dry-run    only show what would be done, host by host
  kk add nodes -f cluster.yaml -a kk-bundle.tar.zst --public-key minisign.pub

Existing nodes stay unchanged, except that the names of the new nodes are added to their /etc/hosts.";

/// Options of `kk add nodes`.
#[derive(Debug, Args)]
#[command(after_help = ADD_EXAMPLES)]
pub struct AddNodes {
    /// Configuration file with the existing and the new nodes, or - for stdin
    #[arg(short, long, value_name = "FILE")]
    pub filename: PathBuf,

    #[command(flatten)]
    #[expect(missing_docs, reason = "documented at the type")]
    pub source: SourceOptions,

    /// Also install missing system packages from the bundle
    #[arg(long, requires = "artifact")]
    pub with_packages: bool,

    /// Do not pull images in advance: the kubelet pulls an image when a pod needs it
    #[arg(long, conflicts_with = "artifact")]
    pub skip_pull_images: bool,

    #[command(flatten)]
    #[expect(missing_docs, reason = "documented at the type")]
    pub run: RunOptions,
}

const DELETE_EXAMPLES: &str = "\
Examples:
  kk delete node node3 -f cluster.yaml             drain the node, remove it, clean the host
  kk delete node node3 node4 -f cluster.yaml       one after the other
  kk delete node node3 -f cluster.yaml --force     delete pods that cannot be evicted, too
  kk delete node node3 -f cluster.yaml --gone      the host is lost: only remove it from the cluster

Remove the node from the file afterwards. Otherwise the next `kk create cluster` adds it again.";

/// Options of `kk delete node`.
#[derive(Debug, Args)]
#[command(after_help = DELETE_EXAMPLES)]
pub struct DeleteNode {
    /// Names of nodes, as in the file
    #[arg(required = true, value_name = "NAME")]
    pub names: Vec<String>,

    /// Configuration file that still contains the nodes, or - for stdin
    #[arg(short, long, value_name = "FILE")]
    pub filename: PathBuf,

    /// Also remove the container runtime with its images and data from the hosts
    #[arg(short = 'A', long)]
    pub all: bool,

    /// Delete pods without a controller, and after the drain timeout pods that a disruption budget protects
    #[arg(long)]
    pub force: bool,

    /// The hosts are permanently lost: neither drain nor clean them
    #[arg(long)]
    pub gone: bool,

    /// Maximum time to evict the pods of a node
    #[arg(long, value_name = "TIME", default_value = "5m", value_parser = duration::limit)]
    pub drain_timeout: Duration,

    #[command(flatten)]
    #[expect(missing_docs, reason = "documented at the type")]
    pub run: RunOptions,
}
