//! The operator's clients of the API server.

use std::time::{Duration, Instant};

use kube::Client;
use tokio_util::sync::CancellationToken;

use super::Settings;
use super::start::StartError;
use crate::cluster::{self, ClientError, ClientSettings};
use crate::metrics::OperatorMetrics;

/// Longest time of a request for the Lease or the webhooks.
const CONTROL: Duration = Duration::from_secs(10);

/// Clients of the API server; they differ in their limits of requests.
pub(super) struct Clients {
    /// Lists and watches.
    pub(super) watch: Client,
    /// Changes objects; the patcher itself limits its requests.
    pub(super) patch: Client,
    /// The Lease and the webhooks: few requests, which must not wait behind requests of watches.
    pub(super) control: Client,
    /// Address of the API server.
    address: String,
}

impl Clients {
    pub(super) async fn connect(settings: &Settings, metrics: &OperatorMetrics) -> Result<Self, ClientError> {
        let with = |timeout, retry| ClientSettings {
            timeout: Some(timeout),
            limit: None,
            retry,
            ..settings.client.clone()
        };
        let of_patcher = |address: &str| metrics.of_object_patcher(address);
        let of_client = |address: &str| metrics.of_client(address);
        let mut address = String::new();
        let noted = |found: &str| {
            found.clone_into(&mut address);
            of_client(found)
        };
        Ok(Self {
            watch: cluster::connect(&settings.client, noted).await?,
            patch: cluster::connect(&with(settings.patcher_timeout, true), of_patcher).await?,
            control: cluster::connect(&with(CONTROL, false), of_client).await?,
            address,
        })
    }
}

/// Waits until the API server answers anything at all.
pub(super) async fn wait_for_api(
    clients: &Clients,
    timeout: Option<Duration>,
    stop: &CancellationToken,
) -> Result<(), StartError> {
    let (started, mut pause) = (Instant::now(), Duration::from_millis(500));
    loop {
        let error = match clients.control.apiserver_version().await {
            Ok(_) | Err(kube::Error::Api(_)) => return Ok(()),
            Err(error) => cluster::explain(&error),
        };
        if let Some(timeout) = timeout
            && started.elapsed() + pause > timeout
        {
            let address = clients.address.clone();
            return Err(StartError::Unreachable { address, time: timeout, why: error });
        }
        tracing::warn!(error, "the Kubernetes API at {} does not answer, trying again", clients.address);
        tokio::select! {
            () = stop.cancelled() => return Ok(()),
            () = tokio::time::sleep(pause) => {}
        }
        pause = (pause * 2).min(Duration::from_secs(5));
    }
}
