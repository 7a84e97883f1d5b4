//! End-to-end scenarios and benches: `kk` against the real hosts of `kk-lab`. See `kk-e2e --help` and docs/design/lab-and-ci.md.
//!
//! Everything a run writes (output of each command, cluster files, logs of `kk`) lies in the artefacts directory, one
//! directory a scenario. Nothing but the lab is touched: `kk` runs in the lab's network with a home directory of its own.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use clap::{Args, Parser, Subcommand};

use crate::context::Tools;

mod bench;
mod bench_day_two;
mod bench_kubesphere;
mod bench_shell_operator;
mod busy;
mod cases;
mod checks;
mod cluster;
mod context;
mod core_seconds;
mod fingerprint;
mod host_state;
mod kk;
mod lab;
mod process;
mod registry;
mod report;
mod scenarios;
mod selection;
mod site;
mod suite;

/// Runs kk against the real hosts of kk-lab: scenarios, or `bench`.
///
/// Needs root on Debian or Ubuntu, and owns the lab while it runs: hosts that run are replaced by fresh ones.
#[derive(Debug, Parser)]
#[command(name = "kk-e2e", version)]
struct Cli {
    #[command(subcommand)]
    command: Option<Command>,
    /// List the groups, their scenarios and what each shows
    #[arg(long)]
    list: bool,
    /// Print what the mirror has to hold for the chosen scenarios: arguments of `kk-lab mirror build`
    #[arg(long)]
    needs: bool,
    #[command(flatten)]
    selection: selection::Selection,
    #[command(flatten)]
    options: suite::Options,
    #[command(flatten)]
    common: Common,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Measure how long kk takes, beside a hand-written script, and what shell-operator costs
    Bench {
        /// How often each figure is taken; the median counts
        #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u8).range(1..))]
        repeat: u8,
        /// Write the table between the markers of this file
        #[arg(long, value_name = "FILE")]
        table: Option<PathBuf>,
    },
}

#[derive(Debug, Args)]
struct Common {
    /// Only these, by name (commas or given again)
    #[arg(long, value_delimiter = ',', global = true)]
    only: Vec<String>,
    /// Where each run leaves what it wrote [default: `e2e` beside the directory of this program]
    #[arg(long, value_name = "DIR", global = true)]
    artefacts: Option<PathBuf>,
    /// The kk under test [default: beside this program]
    #[arg(long, env = "KK", value_name = "FILE", global = true)]
    kk: Option<PathBuf>,
    /// The lab [default: beside this program]
    #[arg(long, env = "KK_LAB", value_name = "FILE", global = true)]
    kk_lab: Option<PathBuf>,
}

fn main() -> ExitCode {
    match dispatch(Cli::parse()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            report::line(&format!("error: {error:#}"));
            ExitCode::FAILURE
        }
    }
}

/// Whether all went well.
fn dispatch(cli: Cli) -> Result<bool> {
    if cli.list {
        suite::list();
        return Ok(true);
    }
    let selection = cli.selection.only(cli.common.only.clone());
    if cli.needs {
        report::result(&suite::needs(&selection.chains()?).join(" "));
        return Ok(true);
    }
    let tools = Tools::find(cli.common.kk, cli.common.kk_lab, cli.common.artefacts)?;
    match cli.command {
        None => suite::run(&tools, &selection, cli.options),
        Some(Command::Bench { repeat, table }) => {
            let wanted = |bench: &str| cli.common.only.iter().any(|name| name == bench);
            let of_others = [
                bench_day_two::NAME,
                bench_kubesphere::NAME,
                bench_shell_operator::NAME,
                bench_shell_operator::SOAK,
            ];
            let of_kk: Vec<String> =
                cli.common.only.iter().filter(|name| !of_others.contains(&name.as_str())).cloned().collect();
            let (all, mut good) = (cli.common.only.is_empty(), true);
            if all || !of_kk.is_empty() {
                good &= bench::run(&tools, &of_kk, repeat, table.as_deref())?;
            }
            if all || wanted(bench_day_two::NAME) {
                good &= bench_day_two::run(&tools, repeat, table.as_deref())?;
            }
            if all || wanted(bench_kubesphere::NAME) {
                good &= bench_kubesphere::run(&tools, repeat, table.as_deref())?;
            }
            if all || wanted(bench_shell_operator::NAME) {
                good &= bench_shell_operator::run(bench_shell_operator::NAME, table.as_deref())?;
            }
            if wanted(bench_shell_operator::SOAK) {
                good &= bench_shell_operator::run(bench_shell_operator::SOAK, table.as_deref())?;
            }
            Ok(good)
        }
    }
}
