//! The program `kk`.

use std::process::ExitCode;

use clap::Parser;
use kk::{args::Cli, error::Error, exit::ExitStatus, printer::Printer};

fn main() -> ExitCode {
    let cli = Cli::parse();
    let runtime = match tokio::runtime::Runtime::new() {
        Ok(runtime) => runtime,
        Err(error) => {
            Printer::plain().error(&Error::other("start worker threads", error));
            return ExitStatus::Failed.into();
        }
    };
    let status = runtime.block_on(kk::run(cli));
    // A thread may still wait for an answer on the terminal; nobody needs it any more.
    runtime.shutdown_background();
    status.into()
}
