//! Throw-away hosts on one machine and a mirror of everything a cluster needs: for the demo, the end-to-end tests and
//! anyone's first try. See `kk-lab --help`.

use std::os::unix::process::CommandExt;
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::Parser;

use crate::cli::{Cli, Command, Mirror, Power};
use crate::hosts::Host;
use crate::mirror::versions::Versions;
use crate::mirror::{programs, publish, serve};
use crate::sys::paths::Paths;
use crate::sys::{background, instance, net, run, say};

mod base;
mod cli;
mod hosts;
mod lab;
mod mirror;
mod prune;
mod sys;

fn main() -> ExitCode {
    let cli = Cli::parse();
    instance::select(cli.lab);
    match dispatch(cli.command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            say::progress(&format!("error: {error:#}"));
            ExitCode::FAILURE
        }
    }
}

fn dispatch(command: Command) -> Result<()> {
    let paths = Paths::from_env()?;
    match command {
        Command::Up(args) => lab::up(&paths, &args),
        Command::Down { all: true, .. } => down_all(),
        Command::Down { host, all: false } => lab::down(host.as_deref()),
        Command::Power { state, host } => lab::power(&host, state == Power::On),
        Command::Status { output } => lab::status(output),
        Command::Exec { host, command } => become_program(Host::named(&host)?.inside(&command)?),
        Command::Enter { command } => enter(&command),
        Command::Mirror(Mirror::Build { kubernetes, with, programs }) => {
            let versions = Versions::load(&paths.data)?;
            let kubernetes = versions.chosen(&kubernetes)?;
            if programs.is_empty() {
                sys::need_root()?;
                return publish::build(&paths, &versions, &kubernetes, &with);
            }
            for (component, directory) in programs::ensure_only(&paths, &versions, &kubernetes, &programs)? {
                say::answer(&format!("{component}\t{}", directory.display()));
            }
            Ok(())
        }
        Command::Mirror(Mirror::Prune) => prune::run(&paths, &Versions::load(&paths.data)?),
        Command::Mirror(Mirror::Serve { listen }) => serve::run(&paths.mirror(), &listen),
    }
}

/// Takes down each lab in a process of its own: a process works on one lab.
fn down_all() -> Result<()> {
    let program = std::env::current_exe().context("this program has no file")?;
    let mut failures = Vec::new();
    for number in instance::all() {
        let down =
            run::output(std::process::Command::new(&program).args(["--lab", &number.to_string(), "down"]));
        failures.extend(down.err().map(|error| format!("{error:#}")));
    }
    anyhow::ensure!(failures.is_empty(), "{}", failures.join("\n"));
    Ok(())
}

/// Runs a command of this machine in the lab's network, marked as the lab's so that `down` ends it.
fn enter(words: &[String]) -> Result<()> {
    sys::need_root()?;
    anyhow::ensure!(net::is_up()?, "the lab is not up\nhint: `kk-lab up`");
    let (program, args) = words.split_first().context("no command was given")?;
    become_program(background::in_group("enter", &net::inside(program, args), false)?)
}

/// Replaces this process, so that signals, terminal and exit code are the command's own.
fn become_program(mut command: std::process::Command) -> Result<()> {
    let error = command.exec();
    Err(error).with_context(|| format!("cannot start {}", command.get_program().display()))
}
