//! Implements `ks-installer run`.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use clap::Args;
use ks_installer::engine::Backoff;
use ks_installer::operator::{self, Options};
use shell_operator::operator::Settings;
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

use super::{ClusterArgs, PayloadArgs};

#[derive(Args)]
pub(super) struct RunArgs {
    #[command(flatten)]
    payload: PayloadArgs,
    #[command(flatten)]
    cluster: ClusterArgs,
    /// Make only one of several replicas active, by leader election
    #[arg(long)]
    leader_election: bool,
    /// File that exists while all components are installed
    #[arg(long, value_name = "FILE", default_value = "/kubesphere/playbooks/kubesphere_running")]
    running_file: PathBuf,
    /// Address on which metrics and health are served
    #[arg(long, value_name = "ADDRESS", default_value = "0.0.0.0:9115")]
    listen: SocketAddr,
    /// Seconds between full checks of all components, independent of watches
    #[arg(long, value_name = "SECONDS", default_value_t = 600, value_parser = clap::value_parser!(u64).range(1..))]
    resync: u64,
    /// Text that the status repeats, so that the deploying tool recognises a status of this operator
    #[arg(long, env = "KS_INSTALLER_REVISION", value_name = "TEXT")]
    revision: Option<String>,
}

/// Runs the operator until it gets SIGINT or SIGTERM.
pub(super) async fn run(args: RunArgs) -> anyhow::Result<()> {
    let filter = tracing_subscriber::EnvFilter::try_from_default_env().unwrap_or_else(|_| "warn".into());
    tracing_subscriber::fmt().json().with_env_filter(filter).with_writer(std::io::stderr).init();
    let stop = CancellationToken::new();
    stop_on_signal(stop.clone())?;
    let mut settings =
        Settings { listen: Some(args.listen), client: args.cluster.client(), ..Settings::default() };
    "ks_installer_".clone_into(&mut settings.metrics_prefix);
    operator::run(Options {
        operator: settings,
        payload: args.payload.payload,
        helm: args.payload.helm,
        namespace: args.cluster.namespace,
        leader_election: args.leader_election,
        running_file: Some(args.running_file),
        resync: Duration::from_secs(args.resync),
        revision: args.revision,
        backoff: Backoff::default(),
        print: Arc::new(super::print),
        stop,
    })
    .await
}

fn stop_on_signal(stop: CancellationToken) -> anyhow::Result<()> {
    let mut terminate = signal(SignalKind::terminate()).context("cannot catch SIGTERM")?;
    let mut interrupt = signal(SignalKind::interrupt()).context("cannot catch SIGINT")?;
    tokio::spawn(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
        stop.cancel();
    });
    Ok(())
}
