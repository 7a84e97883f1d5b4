//! The program `kk`.

use std::process::ExitCode;

use clap::Parser;
use kk::{
    args::{Cli, kubekey},
    error::Error,
    exit::ExitStatus,
    printer::Printer,
};

fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(refused) => return refuse(&refused),
    };
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

/// Help and version end here, too.
fn refuse(refused: &clap::Error) -> ExitCode {
    let first = std::env::args_os().nth(1).unwrap_or_default();
    if let Some(error) = kubekey::not_yet(refused, &first.to_string_lossy()) {
        Printer::plain().error(&error);
        return error.status().into();
    }
    // A reader that has gone away needs no help.
    let _ = refused.print();
    if refused.use_stderr() { ExitStatus::Usage.into() } else { ExitStatus::Ok.into() }
}
