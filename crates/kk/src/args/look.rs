//! Options of the commands that only read the state of hosts.

use std::path::PathBuf;

use clap::Args;

use super::{HostKeyChecking, OutputFormat};

const STATUS_EXAMPLES: &str = "\
Examples:
  kk status -f cluster.yaml                  nodes, etcd, certificates, differences from the file
  kk status -f cluster.yaml --output json    the same as one JSON document

The exit code is 0 if the cluster matches the file, otherwise 1. It is 4 if no host answers.";

const EXPIRATION_EXAMPLES: &str = "\
Examples:
  kk certs check-expiration -f cluster.yaml                  sorted by expiry date
  kk certs check-expiration -f cluster.yaml --output json";

/// Options of `kk status`.
#[derive(Debug, Args)]
#[command(after_help = STATUS_EXAMPLES)]
pub struct Status {
    #[command(flatten)]
    #[expect(missing_docs, reason = "documented at the type")]
    pub look: LookOptions,
}

/// Options of `kk certs check-expiration`.
#[derive(Debug, Args)]
#[command(after_help = EXPIRATION_EXAMPLES)]
pub struct CheckExpiration {
    #[command(flatten)]
    #[expect(missing_docs, reason = "documented at the type")]
    pub look: LookOptions,
}

/// Options of every command that only reads the state of hosts.
#[derive(Debug, Args)]
pub struct LookOptions {
    /// Configuration file, or - for stdin
    #[arg(short, long, value_name = "FILE")]
    pub filename: PathBuf,

    /// How to check SSH host keys
    #[arg(long, value_name = "HOW", default_value = "accept-new")]
    pub host_key_checking: HostKeyChecking,

    /// Directory for downloads, certificates, kubeconfigs and logs
    #[arg(long, value_name = "DIR", default_value = "./kubekey")]
    pub workdir: PathBuf,

    /// Output: tables as text, or one JSON document
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    pub output: OutputFormat,
}
