//! Options of `kk config validate`.

use std::path::PathBuf;

use clap::Args;

use super::OutputFormat;

/// Options of `kk config validate`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  kk config validate -f cluster.yaml
  kk config validate -f cluster.yaml --output json
  kk config validate -f - < cluster.yaml")]
pub struct ConfigValidate {
    /// Configuration file, or - for stdin
    #[arg(short, long, value_name = "FILE")]
    pub filename: PathBuf,

    /// Output: findings as text on stderr, or events on stdout as one JSON object per line
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    pub output: OutputFormat,
}
