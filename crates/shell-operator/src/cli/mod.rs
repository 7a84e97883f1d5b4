//! Commands and their flags.

mod author;
mod client;
mod start;

use std::process::ExitCode;

use clap::{FromArgMatches, Parser, Subcommand};
use shell_operator::flags::{self, Flags};

/// Runs hooks on Kubernetes events.
#[derive(Parser)]
#[command(name = "shell-operator", version, about, args_conflicts_with_subcommands = true)]
struct Cli {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    start: Flags,
}

#[derive(Subcommand)]
enum Command {
    /// Run the operator (the default)
    Start(Box<Flags>),
    /// Print the version
    Version,
    /// Show the queues of a running operator
    Queue {
        #[command(flatten)]
        socket: client::SocketArgs,
        #[command(subcommand)]
        command: client::QueueCommand,
    },
    /// Show the hooks of a running operator
    Hook {
        #[command(flatten)]
        socket: client::SocketArgs,
        #[command(subcommand)]
        command: client::HookCommand,
    },
    /// Show or change the parameters of a running operator
    Config {
        #[command(flatten)]
        socket: client::SocketArgs,
        #[command(subcommand)]
        command: client::ConfigCommand,
    },
    /// Show the response of the debug endpoint for a path
    Raw {
        #[command(flatten)]
        socket: client::SocketArgs,
        /// Path, like /queue/list.json
        path: String,
    },
    /// Print a completion script for a shell
    Completion {
        /// The shell
        shell: clap_complete::Shell,
    },
    /// Check the hooks in a directory
    Validate(author::ValidateArgs),
    /// Run one hook with a binding context, and show the changes that it requests
    RunHook(author::RunHookArgs),
}

/// Runs the command that the arguments name.
pub(crate) fn main() -> ExitCode {
    let cli = match flags::command::<Cli>().try_get_matches().and_then(|found| Cli::from_arg_matches(&found))
    {
        Ok(cli) => cli,
        Err(error) => return refuse(&error),
    };
    let result = match cli.command {
        None => start::run(cli.start),
        Some(Command::Start(args)) => start::run(*args),
        Some(Command::Version) => {
            print(&format!("shell-operator {}\njq: jaq (in process)", env!("CARGO_PKG_VERSION")));
            Ok(())
        }
        Some(Command::Completion { shell }) => {
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut flags::command::<Cli>(), "shell-operator", &mut script);
            print(String::from_utf8_lossy(&script).trim_end());
            Ok(())
        }
        Some(Command::Queue { socket, command }) => client::queue(&socket, &command),
        Some(Command::Hook { socket, command }) => client::hook(&socket, &command),
        Some(Command::Config { socket, command }) => client::config(&socket, &command),
        Some(Command::Raw { socket, path }) => client::show(&socket, &path),
        Some(Command::Validate(args)) => author::validate(&args),
        Some(Command::RunHook(args)) => author::run_hook(&args),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            complain(&format!("{error:#}"));
            ExitCode::FAILURE
        }
    }
}

/// Shows why the arguments are wrong, or the requested help. The exit code of wrong arguments is the original's.
fn refuse(error: &clap::Error) -> ExitCode {
    // If the terminal is closed, there is nowhere to report it.
    let _ = error.print();
    if error.use_stderr() { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

#[expect(clippy::print_stdout, reason = "the answer of a command")]
fn print(text: &str) {
    println!("{text}");
}

#[expect(clippy::print_stderr, reason = "why a command failed")]
fn complain(text: &str) {
    eprintln!("error: {text}");
}
