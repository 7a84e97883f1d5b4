//! `kk man-pages`: writes a man page for each command.

use clap::CommandFactory;

use crate::args::{Cli, ManPages};
use crate::error::Error;

pub(super) fn run(args: &ManPages) -> Result<(), Error> {
    clap_mangen::generate_to(Cli::command(), &args.directory).map_err(|error| Error::Other {
        doing: format!("write the man pages into {}", args.directory.display()),
        cause: error.to_string(),
        hint: Some("give an existing directory in which you may write".to_owned()),
    })
}
