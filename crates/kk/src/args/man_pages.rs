//! Options of `kk man-pages`.

use std::path::PathBuf;

use clap::Args;

/// Options of `kk man-pages`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  kk man-pages /usr/local/share/man/man1")]
pub struct ManPages {
    /// An existing directory, which gets a page for each command
    #[arg(value_name = "DIRECTORY")]
    pub directory: PathBuf,
}
