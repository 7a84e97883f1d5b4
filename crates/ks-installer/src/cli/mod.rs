//! Defines the commands and their arguments.

mod look;
mod payload;
mod run;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Parser, Subcommand};
use shell_operator::cluster::{ClientSettings, install_crypto_provider};

/// Installs, changes and removes KubeSphere's components in a cluster.
#[derive(Parser)]
#[command(name = "ks-installer", version, about)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Run the operator
    Run(run::RunArgs),
    /// Show what a ClusterConfiguration would change
    Plan(look::PlanArgs),
    /// List the images that a ClusterConfiguration needs
    Images(look::ImagesArgs),
    /// Build or check a payload
    #[command(subcommand)]
    Payload(payload::PayloadCommand),
}

/// What is installed from.
#[derive(Args)]
struct PayloadArgs {
    /// Directory of the payload
    #[arg(long, env = "KS_INSTALLER_PAYLOAD", value_name = "DIR", default_value = "/payload")]
    payload: PathBuf,
    /// Path of the helm binary
    #[arg(long, env = "KS_INSTALLER_HELM", value_name = "FILE", default_value = "helm")]
    helm: PathBuf,
}

/// How the API server is reached.
#[derive(Args)]
struct ClusterArgs {
    /// Kubeconfig [default: KUBECONFIG, ~/.kube/config or the pod's service account]
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// Namespace of the ClusterConfiguration
    #[arg(long, env = "KS_INSTALLER_NAMESPACE", value_name = "NAME", default_value = "kubesphere-system")]
    namespace: String,
}

impl ClusterArgs {
    fn client(&self) -> ClientSettings {
        ClientSettings { kubeconfig: self.kubeconfig.clone(), ..ClientSettings::default() }
    }
}

pub(crate) fn main() -> ExitCode {
    let cli = Cli::parse();
    install_crypto_provider();
    let result = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .map_err(anyhow::Error::from)
        .and_then(|runtime| runtime.block_on(dispatch(cli.command)));
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprint(&format!("error: {error:#}"));
            ExitCode::FAILURE
        }
    }
}

async fn dispatch(command: Command) -> anyhow::Result<()> {
    match command {
        Command::Run(args) => run::run(args).await,
        Command::Plan(args) => look::plan(args).await,
        Command::Images(args) => look::images(args).await,
        Command::Payload(command) => payload::run(command).await,
    }
}

/// Prints a line for users who follow the log. A closed output does not end the operator.
#[expect(clippy::print_stdout, reason = "this is the program's output")]
fn print(line: &str) {
    println!("{line}");
}

#[expect(clippy::print_stderr, reason = "errors are for the person at the terminal")]
fn eprint(line: &str) {
    eprintln!("{line}");
}
