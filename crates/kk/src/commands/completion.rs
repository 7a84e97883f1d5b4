//! `kk completion`: prints a completion script for a shell.

use clap::CommandFactory;
use clap_complete::Shell;

use crate::args::{Cli, Completion, ShellName};
use crate::error::Error;
use crate::printer::Printer;

pub(super) fn run(args: &Completion, printer: &Printer) -> Result<(), Error> {
    let shell = args.shell.or(args.shell_type).expect("clap requires one of both");
    let mut script = Vec::new();
    clap_complete::generate(generator(shell), &mut Cli::command(), "kk", &mut script);
    printer.print_stdout(&String::from_utf8_lossy(&script))
}

fn generator(shell: ShellName) -> Shell {
    match shell {
        ShellName::Bash => Shell::Bash,
        ShellName::Elvish => Shell::Elvish,
        ShellName::Fish => Shell::Fish,
        ShellName::PowerShell => Shell::PowerShell,
        ShellName::Zsh => Shell::Zsh,
    }
}
