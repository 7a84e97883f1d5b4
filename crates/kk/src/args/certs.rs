//! Options of `kk certs renew` and `kk certs rotate-ca`.

use std::path::PathBuf;

use clap::Args;
use clap::builder::PossibleValuesParser;

use super::cluster::RunOptions;

const EXAMPLES: &str = "\
Examples:
  kk certs renew -f cluster.yaml               all certificates
  kk certs renew apiserver -f cluster.yaml     only the certificate of each API server
  kk certs renew -f cluster.yaml --dry-run     only show what would be done, host by host

Control planes and etcd members are renewed one after the other. `kk create cluster` also renews
each certificate that expires within 30 days.";

/// Options of `kk certs renew`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct RenewCerts {
    /// Certificates to renew, by their names in `kk certs check-expiration` [default: all]
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
  kk certs rotate-ca -f cluster.yaml                    to new CAs that kk creates
  kk certs rotate-ca -f cluster.yaml --ca-dir my-cas    to your own CAs
  kk certs rotate-ca -f cluster.yaml --dry-run          only show what would be done, host by host

The rotation has three rounds: trust the old and the new CAs; issue all certificates again; trust
only the new CAs. If a run is interrupted, run the command again to resume it. Workloads restart
once, before the second round, because most programs read the CA only when they start. kk lists
pods of Jobs and pods without a workload: restart those yourself. Service account keys do not change.";

/// Options of `kk certs rotate-ca`.
#[derive(Debug, Args)]
#[command(after_help = ROTATE_EXAMPLES)]
pub struct RotateCa {
    /// Configuration file of the cluster, or - for stdin
    #[arg(short, long, value_name = "FILE")]
    pub filename: PathBuf,

    /// Directory with your own CAs: ca.crt, front-proxy-ca.crt, etcd/ca.crt, each with its .key [default: kk creates them]
    #[arg(long, value_name = "DIR")]
    pub ca_dir: Option<PathBuf>,

    /// Do not restart your own workloads; use it only if their programs reload the CA when its file changes
    #[arg(long)]
    pub keep_workloads: bool,

    #[command(flatten)]
    #[expect(missing_docs, reason = "documented at the type")]
    pub run: RunOptions,
}
