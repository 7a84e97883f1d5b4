//! Connecting to the API server.

use std::path::PathBuf;
use std::time::Duration;

use http::header::USER_AGENT;
use http::{HeaderValue, Request};
use hyper_util::client::legacy;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use kube::Client;
use kube::client::{Body, ClientBuilder, ConfigExt};
use kube::config::{Config, KubeConfigOptions, Kubeconfig};
use tower::{BoxError, ServiceBuilder};

use super::api::chain;
use super::connector::Connector;
use super::limit::Guard;
use crate::metrics::ClientMetrics;

/// How the API server's audit log and the managers of fields name the operator.
const AGENT: &str = concat!("shell-operator/", env!("CARGO_PKG_VERSION"));

/// How many requests may be sent.
#[derive(Clone, Copy, Debug)]
pub struct RateLimit {
    /// Requests a second in the long run; no limit when it is not above 0.
    pub qps: f64,
    /// Requests at once.
    pub burst: u32,
}

/// How to reach the API server.
#[derive(Clone, Debug, Default)]
pub struct ClientSettings {
    /// A kubeconfig; otherwise `$KUBECONFIG`, `~/.kube/config`, or the pod's service account.
    pub kubeconfig: Option<PathBuf>,
    /// A context of the kubeconfig.
    pub context: Option<String>,
    /// URL that replaces the one of the kubeconfig.
    pub server: Option<String>,
    /// Longest time of a request; `None` for no limit, as watches need it.
    pub timeout: Option<Duration>,
    /// Whether requests that the API server refuses for now are sent again.
    pub retry: bool,
    /// Limit of requests; the pages of a list count as one. `None` for no limit.
    pub limit: Option<RateLimit>,
}

/// Why there is no client.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// There is no usable configuration.
    #[error(
        "cannot find out how to reach the Kubernetes API: {0}\nhint: set --kube-config (and --kube-context) or KUBECONFIG, or run in a pod with a service account"
    )]
    Config(String),
    /// The configuration cannot be used.
    #[error("cannot use the Kubernetes client configuration: {0}")]
    Client(String),
}

impl From<kube::Error> for ClientError {
    fn from(error: kube::Error) -> Self {
        Self::Client(chain(&error))
    }
}

/// A client for `settings` whose requests are counted by what `metrics` makes for its address. Does not talk to the
/// API server yet.
pub async fn connect(
    settings: &ClientSettings,
    metrics: impl FnOnce(&str) -> ClientMetrics,
) -> Result<Client, ClientError> {
    let mut config = configuration(settings).await?;
    if let Some(server) = &settings.server {
        let wrong = |error| ClientError::Config(format!("'{server}' is not a URL: {error}"));
        config.cluster_url = server.parse().map_err(wrong)?;
    }
    config.connect_timeout = Some(Duration::from_secs(10));
    config.read_timeout = settings.timeout;
    config.default_retry = settings.retry;
    config.headers.push((USER_AGENT, HeaderValue::from_static(AGENT)));
    let address = config.cluster_url.to_string();
    let guard = Guard::new(settings.limit, metrics(address.trim_end_matches('/')));
    // Proxies and retries are the library's business.
    if settings.timeout.is_none() && config.proxy_url.is_none() && !config.default_retry {
        return direct(&config, &guard);
    }
    Ok(ClientBuilder::try_from(config)?.with_layer(&guard).build())
}

/// A client whose connections read from the socket in large pieces, as watches need it.
fn direct(config: &Config, guard: &Guard) -> Result<Client, ClientError> {
    let mut tcp = HttpConnector::new();
    tcp.enforce_http(false);
    tcp.set_connect_timeout(config.connect_timeout);
    let https = config.rustls_https_connector_with_connector(Connector(tcp))?;
    let http: legacy::Client<_, Body> = legacy::Client::builder(TokioExecutor::new()).build(https);
    let service = ServiceBuilder::new()
        .layer(guard)
        .layer(config.base_uri_layer())
        .option_layer(config.auth_layer()?)
        .layer(config.extra_headers_layer()?)
        .map_request(|request: Request<Body>| {
            // As the library does it for the other clients.
            tracing::debug!(target: "kube_client", method = %request.method(), url = %request.uri(), "requesting");
            request
        })
        .map_err(BoxError::from)
        .service(http);
    Ok(ClientBuilder::new(service, config.default_namespace.clone()).build())
}

async fn configuration(settings: &ClientSettings) -> Result<Config, ClientError> {
    let options = KubeConfigOptions { context: settings.context.clone(), ..KubeConfigOptions::default() };
    let wrong = |error: kube::config::KubeconfigError| ClientError::Config(chain(&error));
    match (&settings.kubeconfig, &settings.context) {
        (Some(path), _) => {
            let kubeconfig = Kubeconfig::read_from(path).map_err(wrong)?;
            Config::from_custom_kubeconfig(kubeconfig, &options).await.map_err(wrong)
        }
        (None, Some(_)) => Config::from_kubeconfig(&options).await.map_err(wrong),
        (None, None) => Config::infer().await.map_err(|error| ClientError::Config(chain(&error))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::install_crypto_provider;
    use crate::metrics::OperatorMetrics;

    async fn connect_with(certificate: &str, key: &str) -> Result<Client, ClientError> {
        install_crypto_provider();
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("kubeconfig");
        let fixtures = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/x509-v1");
        let user = format!("client-certificate: {fixtures}/{certificate}, client-key: {fixtures}/{key}");
        let text = format!(
            "{{apiVersion: v1, kind: Config, current-context: x, contexts: [{{name: x, context: {{cluster: c, user: u}}}}], \
             clusters: [{{name: c, cluster: {{server: 'https://127.0.0.1:1'}}}}], users: [{{name: u, user: {{{user}}}}}]}}"
        );
        std::fs::write(&path, text).unwrap();
        let settings = ClientSettings { kubeconfig: Some(path), ..ClientSettings::default() };
        connect(&settings, |address| OperatorMetrics::new("p_").of_client(address)).await
    }

    #[tokio::test]
    async fn a_client_certificate_may_be_of_version_1() {
        assert!(connect_with("client.crt", "client.key").await.is_ok());
    }

    #[tokio::test]
    async fn what_is_wrong_with_a_certificate_is_said_once() {
        let Err(error) = connect_with("client.crt", "client.crt").await else { panic!("this is no key") };
        let text = format!("{:#}", anyhow::Error::from(error));
        assert_eq!(text.matches("missing a private key").count(), 1, "{text}");
    }
}
