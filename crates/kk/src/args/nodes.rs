//! Options of the commands about single nodes.

use std::path::PathBuf;

use clap::Args;

use super::cluster::{RunOptions, directory};

const ADD_EXAMPLES: &str = "\
Examples:
  kk add nodes -f cluster.yaml              the nodes of the file that are not in the cluster yet
  kk add nodes -f cluster.yaml --dry-run    only show what would be done, host by host

The nodes that are in the cluster are left as they are; they only learn the names of the new ones.";

/// Options of `kk add nodes`.
#[derive(Debug, Args)]
#[command(after_help = ADD_EXAMPLES)]
pub struct AddNodes {
    /// Configuration file that names the new nodes, too; or - for stdin
    #[arg(short, long, value_name = "FILE")]
    pub filename: PathBuf,

    /// Leave it to the kubelet to pull images when a pod needs them
    #[arg(long)]
    pub skip_pull_images: bool,

    /// Directory with templates that replace the built-in ones of the same path
    #[arg(long, value_name = "DIR", value_parser = directory)]
    pub templates: Option<PathBuf>,

    #[command(flatten)]
    #[expect(missing_docs, reason = "documented at the type")]
    pub run: RunOptions,
}
