//! Commands and their flags.

mod start;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Runs hooks on Kubernetes events.
#[derive(Parser)]
#[command(name = "shell-operator", version, about, args_conflicts_with_subcommands = true)]
struct Cli {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    start: start::StartArgs,
}

#[derive(Subcommand)]
enum Command {
    /// Run the operator (the default).
    Start(start::StartArgs),
    /// Print the version.
    Version,
}

/// Runs the command that the arguments name.
pub(crate) fn main() -> ExitCode {
    let cli = Cli::parse();
    let result = match cli.command {
        None => start::run(cli.start),
        Some(Command::Start(args)) => start::run(args),
        Some(Command::Version) => {
            print(&format!("shell-operator {}\njq: jaq (in process)", env!("CARGO_PKG_VERSION")));
            Ok(())
        }
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            complain(&format!("{error:#}"));
            ExitCode::FAILURE
        }
    }
}

#[expect(clippy::print_stdout, reason = "the answer of a command")]
fn print(text: &str) {
    println!("{text}");
}

#[expect(clippy::print_stderr, reason = "why a command failed")]
fn complain(text: &str) {
    eprintln!("error: {text}");
}
