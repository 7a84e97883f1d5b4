//! Options of `kk certs renew` and `kk certs rotate-ca`.

use std::path::PathBuf;

use clap::Args;
use clap::builder::PossibleValuesParser;

use super::cluster::RunOptions;

const EXAMPLES: &str = "\
Examples:
  kk certs renew -f cluster.yaml               all of them
  kk certs renew apiserver -f cluster.yaml     that of the API servers only
  kk certs renew -f cluster.yaml --dry-run     only show what would be done, host by host

Control planes and members of etcd take theirs one after the other. A certificate that ends soon
needs no renewal by hand: kk create cluster renews it in its last 30 days.";

/// Options of `kk certs renew`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct RenewCerts {
    /// What to renew, by its name in `kk certs check-expiration` [default: all]
    #[arg(value_name = "NAME", value_parser = PossibleValuesParser::new(kk_cluster::RENEWABLE))]
    pub names: Vec<String>,

    /// Configuration file of the cluster, or - for stdin
    #[arg(short, long, value_name = "FILE")]
    pub filename: PathBuf,

    #[command(flatten)]
    #[expect(missing_docs, reason = "documented at the type")]
    pub run: RunOptions,
}

const ROTATE_EXAMPLES: &str = "\
Examples:
  kk certs rotate-ca -f cluster.yaml                    to CAs that kk makes
  kk certs rotate-ca -f cluster.yaml --ca-dir my-cas    to your own
  kk certs rotate-ca -f cluster.yaml --dry-run          only show what would be done, host by host

Three rounds: everything trusts the old and the new CAs; everything is issued again; the new ones
alone are trusted. A run that ends early is run again, and goes on. Workloads restart once, before
the second round, because programs read the CA at their start. Pods without a workload, and of
Jobs, are named: start those again yourself. Service accounts keep their keys.";

/// Options of `kk certs rotate-ca`.
#[derive(Debug, Args)]
#[command(after_help = ROTATE_EXAMPLES)]
pub struct RotateCa {
    /// Configuration file of the cluster, or - for stdin
    #[arg(short, long, value_name = "FILE")]
    pub filename: PathBuf,

    /// Directory with CAs of your own: ca.crt, front-proxy-ca.crt, etcd/ca.crt, each with its .key [default: kk makes them]
    #[arg(long, value_name = "DIR")]
    pub ca_dir: Option<PathBuf>,

    /// Restart none of your workloads: for programs that read the CA again when its file changes
    #[arg(long)]
    pub keep_workloads: bool,

    #[command(flatten)]
    #[expect(missing_docs, reason = "documented at the type")]
    pub run: RunOptions,
}
