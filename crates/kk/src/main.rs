//! The binary `kk`.

use std::process::ExitCode;

use clap::Parser;
use kk::{
    args::{Cli, kubekey, typing},
    error::Error,
    exit::ExitStatus,
    printer::Printer,
};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

fn main() -> ExitCode {
    let line: Vec<String> = std::env::args_os().skip(1).map(|word| word.to_string_lossy().into()).collect();
    if let Some(error) = typing::refused(&line) {
        Printer::plain().error(&error);
        return error.status().into();
    }
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(refused) => return refuse(&refused, &line),
    };
    raise_descriptor_limit();
    let runtime = match tokio::runtime::Runtime::new() {
        Ok(runtime) => runtime,
        Err(error) => {
            Printer::plain().error(&Error::other("start worker threads", error));
            return ExitStatus::Failed.into();
        }
    };
    let status = runtime.block_on(kk::run(cli));
    // A thread may still wait for an answer on the terminal; the answer is no longer needed.
    runtime.shutdown_background();
    status.into()
}

/// Raises the limit of descriptors, because each host needs several and the usual soft limit is 1024. If the limit cannot be
/// raised, kk continues: a smaller limit is enough for fewer hosts.
fn raise_descriptor_limit() {
    let limit = getrlimit(Resource::Nofile);
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit });
}

/// Prints the message of clap. Help and version are reported in this way, too.
fn refuse(refused: &clap::Error, line: &[String]) -> ExitCode {
    if let Some(error) = kubekey::only_there(refused, line) {
        Printer::plain().error(&error);
        return error.status().into();
    }
    // A reader that has closed the pipe needs no message.
    let _ = refused.print();
    if refused.use_stderr() { ExitStatus::Usage.into() } else { ExitStatus::Ok.into() }
}
