//! The program `kk`.

use std::process::ExitCode;

use clap::Parser;
use kk::args::Cli;

fn main() -> ExitCode {
    kk::run(Cli::parse()).into()
}
