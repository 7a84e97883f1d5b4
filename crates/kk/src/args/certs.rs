//! Options of `kk certs renew`.

use std::path::PathBuf;

use clap::Args;
use clap::builder::PossibleValuesParser;

use super::cluster::RunOptions;

const EXAMPLES: &str = "\
Examples:
  kk certs renew -f cluster.yaml               all of them
  kk certs renew apiserver -f cluster.yaml     that of the API servers only
  kk certs renew -f cluster.yaml --dry-run     only show what would be done, host by host

Control planes and members of etcd take theirs one after the other. Nothing has to be renewed by hand because it ends: kk
create cluster does that in the last 30 days.";

/// Options of `kk certs renew`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct RenewCerts {
    /// What to make anew, by its name in `kk certs check-expiration` [default: all]
    #[arg(value_name = "NAME", value_parser = PossibleValuesParser::new(kk_cluster::RENEWABLE))]
    pub names: Vec<String>,

    /// Configuration file of the cluster, or - for stdin
    #[arg(short, long, value_name = "FILE")]
    pub filename: PathBuf,

    #[command(flatten)]
    #[expect(missing_docs, reason = "documented at the type")]
    pub run: RunOptions,
}
