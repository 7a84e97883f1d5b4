//! What the operator is told at start.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use super::LeaseName;
use crate::cluster::ClientSettings;
use crate::webhook::server::TlsFiles;

/// Settings of an operator.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Directory with the hooks; absolute.
    pub hooks_dir: PathBuf,
    /// Whether hooks that change while the operator runs are taken over.
    pub hooks_reload: bool,
    /// Directory for the files of the runs; made when it is missing.
    pub tmp_dir: PathBuf,
    /// Where metrics and health are served.
    pub listen: SocketAddr,
    /// Prefix of the operator's own metrics.
    pub metrics_prefix: String,
    /// Whether `/metrics` has the metrics of hooks too.
    pub hook_metrics_in_main: bool,
    /// How to reach the API server.
    pub client: ClientSettings,
    /// Time after which an API server that does not answer ends the start; `None` to try for ever.
    pub kube_timeout: Option<Duration>,
    /// Requests a second of object patches.
    pub patcher_qps: f64,
    /// Requests of object patches at once.
    pub patcher_burst: u32,
    /// Longest time of a request of an object patch.
    pub patcher_timeout: Duration,
    /// The Lease by which one of several replicas acts; `None` for a single one.
    pub lease: Option<LeaseName>,
    /// Webhooks.
    pub webhooks: WebhookSettings,
    /// How long running hooks may go on when the operator ends. They get SIGTERM 10 s before that is over.
    pub shutdown_timeout: Duration,
    /// Unix socket of the debug endpoint.
    pub debug_socket: PathBuf,
    /// Where the debug endpoint listens besides, for everybody who reaches it.
    pub debug_http: Option<SocketAddr>,
    /// Whether the files of runs are kept.
    pub keep_tmp_files: bool,
    /// Whether all that is JSON in the output of hooks is looked at.
    pub proxy_hook_json: bool,
}

/// How the API server asks hooks.
#[derive(Clone, Debug)]
pub struct WebhookSettings {
    /// Namespace of the operator and its Services.
    pub namespace: String,
    /// Name of the admission configurations, to which `-hooks` is added.
    pub configuration_name: String,
    /// `Fail` or `Ignore`, for bindings that do not say it.
    pub failure_policy: String,
    /// Admission of requests, validating and mutating.
    pub admission: WebhookServer,
    /// Conversion of custom resources.
    pub conversion: WebhookServer,
    /// Whether the operator makes its certificates itself.
    pub self_signed: bool,
    /// Host by which the API server reaches an operator outside the cluster; otherwise the Services are used.
    pub external_host: Option<String>,
}

/// One of the two webhook servers.
#[derive(Clone, Debug)]
pub struct WebhookServer {
    /// Name of its Service.
    pub service: String,
    /// Its certificate files.
    pub tls: TlsFiles,
    /// Certificate of the authority that the API server has to trust.
    pub ca: PathBuf,
    /// Where it listens.
    pub listen: SocketAddr,
}
