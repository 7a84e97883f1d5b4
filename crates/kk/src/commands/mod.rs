//! One file per command; this list is the map.

mod completion;
mod config_schema;
mod config_validate;
mod create_config;
mod load;
mod version;

use crate::args::{Cli, Command, Config, Create};
use crate::error::Error;
use crate::exit::ExitStatus;
use crate::printer::Printer;

/// Does what the command line asks for and says how it ended.
pub fn run(cli: Cli) -> ExitStatus {
    let printer = Printer::plain();
    match dispatch(cli.command, &printer) {
        Ok(()) => ExitStatus::Ok,
        Err(error) => {
            printer.error(&error);
            error.status()
        }
    }
}

fn dispatch(command: Command, printer: &Printer) -> Result<(), Error> {
    match command {
        Command::Create(Create::Config(args)) => create_config::run(&args, printer),
        Command::Config(Config::Validate(args)) => config_validate::run(&args, printer),
        Command::Config(Config::Schema) => config_schema::run(printer),
        Command::Completion(args) => completion::run(&args, printer),
        Command::Version(args) => version::run(&args, printer),
    }
}
