//! `shell-operator start`.

use anyhow::Context;
use shell_operator::cluster;
use shell_operator::flags::Flags;
use shell_operator::hook;
use shell_operator::operator::Operator;
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

/// Runs the operator until it gets SIGINT or SIGTERM. A second one ends it at once, with its hooks.
pub(crate) fn run(flags: Flags) -> anyhow::Result<()> {
    super::print(&format!("shell-operator {}", env!("CARGO_PKG_VERSION")));
    let layer = flags.log_layer();
    let logger = layer.logger.clone();
    tracing_subscriber::registry().with(layer).init();
    cluster::install_crypto_provider();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(std::thread::available_parallelism().map_or(2, |count| count.get().min(4)))
        .enable_all()
        .build()
        .context("cannot start the runtime")?;
    flags.warn_of_unused();
    runtime.block_on(async {
        let stop = CancellationToken::new();
        stop_on_signal(stop.clone())?;
        let builder = Operator::builder(flags.settings()).logger(logger).stop_with(stop);
        Ok(builder.build().await?.wait().await?)
    })
}

#[expect(clippy::exit, reason = "whoever sends a second signal waits for nothing any more")]
fn stop_on_signal(stop: CancellationToken) -> anyhow::Result<()> {
    let mut terminate = signal(SignalKind::terminate()).context("cannot catch SIGTERM")?;
    let mut interrupt = signal(SignalKind::interrupt()).context("cannot catch SIGINT")?;
    tokio::spawn(async move {
        let mut signal = async || {
            tokio::select! {
                _ = terminate.recv() => SignalKind::terminate(),
                _ = interrupt.recv() => SignalKind::interrupt(),
            }
        };
        signal().await;
        stop.cancel();
        let second = signal().await;
        hook::kill_all();
        std::process::exit(128 + second.as_raw_value());
    });
    Ok(())
}
