//! Settings of the operator at start. The defaults are the same as on the command line, except that no port or socket is opened.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use super::LeaseName;
use crate::cluster::{ClientSettings, RateLimit};
use crate::webhook::server::TlsFiles;

/// Settings of an operator.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Directory with hooks that are programs; `None` for none.
    pub hooks_dir: Option<PathBuf>,
    /// Whether hooks that change while the operator runs are taken over.
    pub hooks_reload: bool,
    /// Directory for the files of the runs; made when it is missing.
    pub tmp_dir: PathBuf,
    /// Where metrics and health are served; `None` for nowhere.
    pub listen: Option<SocketAddr>,
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
    /// How long running hooks may continue when the operator ends. They get SIGTERM 10 s before that time is over.
    pub shutdown_timeout: Duration,
    /// Unix socket of the debug endpoint; `None` for none.
    pub debug_socket: Option<PathBuf>,
    /// Additional address of the debug endpoint, open to every client that reaches it.
    pub debug_http: Option<SocketAddr>,
    /// Whether the files of runs are kept.
    pub keep_tmp_files: bool,
    /// Whether all JSON values in the output of hooks are parsed.
    pub proxy_hook_json: bool,
}

/// How the API server sends requests to hooks.
#[derive(Clone, Debug)]
pub struct WebhookSettings {
    /// Namespace of the operator and its Services.
    pub namespace: String,
    /// Name of the admission configurations, to which `-hooks` is added.
    pub configuration_name: String,
    /// `Fail` or `Ignore`, for bindings that do not set it.
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

/// Requests a second, and at once, of the original.
const REQUESTS: RateLimit = RateLimit { qps: 5.0, burst: 10 };

impl Default for Settings {
    fn default() -> Self {
        Self {
            hooks_dir: None,
            hooks_reload: false,
            tmp_dir: std::env::temp_dir().join("shell-operator"),
            listen: None,
            metrics_prefix: "shell_operator_".to_owned(),
            hook_metrics_in_main: false,
            client: ClientSettings { limit: Some(REQUESTS), ..ClientSettings::default() },
            kube_timeout: None,
            patcher_qps: REQUESTS.qps,
            patcher_burst: REQUESTS.burst,
            patcher_timeout: Duration::from_secs(10),
            lease: None,
            webhooks: WebhookSettings::default(),
            shutdown_timeout: Duration::from_secs(30),
            debug_socket: None,
            debug_http: None,
            keep_tmp_files: false,
            proxy_hook_json: false,
        }
    }
}

impl Default for WebhookSettings {
    fn default() -> Self {
        Self {
            namespace: String::new(),
            configuration_name: "shell-operator-hooks".to_owned(),
            failure_policy: "Fail".to_owned(),
            admission: WebhookServer::with_defaults(
                "shell-operator-validating-svc",
                "/validating-certs",
                9680,
            ),
            conversion: WebhookServer::with_defaults(
                "shell-operator-conversion-svc",
                "/conversion-certs",
                9681,
            ),
            self_signed: false,
            external_host: None,
        }
    }
}

impl WebhookServer {
    fn with_defaults(service: &str, certificates: &str, port: u16) -> Self {
        let file = |name| PathBuf::from(certificates).join(name);
        Self {
            service: service.to_owned(),
            tls: TlsFiles { certificate: file("tls.crt"), key: file("tls.key"), client_ca: Vec::new() },
            ca: file("ca.crt"),
            listen: SocketAddr::from(([0, 0, 0, 0], port)),
        }
    }
}
