//! The flags of the command line, for programs that have an operator in them.
//!
//! ```no_run
//! use clap::{FromArgMatches, Parser};
//! use shell_operator::flags::{self, Flags};
//! use shell_operator::operator::Operator;
//!
//! /// An operator with a flag of its own.
//! #[derive(Parser)]
//! struct Cli {
//!     #[arg(long)]
//!     dry_run: bool,
//!     #[command(flatten)]
//!     operator: Flags,
//! }
//!
//! # async fn example() -> anyhow::Result<()> {
//! let cli = Cli::from_arg_matches(&flags::command::<Cli>().get_matches())?;
//! let operator = Operator::builder(cli.operator.settings()).build().await?;
//! operator.wait().await?;
//! # Ok(())
//! # }
//! ```

mod command;
mod webhooks;

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};

use crate::cluster::{ClientSettings, RateLimit};
use crate::duration;
use crate::log::{Format, Level, LogLayer, Logger};
use crate::operator::{LeaseName, Settings};
pub use command::command;
use command::{host, host_and_port, switch};
use webhooks::WebhookFlags;

/// Default path of the debug socket.
#[doc(hidden)]
pub const SOCKET: &str = "/var/run/shell-operator/debug.socket";

/// Flags of `shell-operator start`; names, environment and defaults are those of flant/shell-operator.
#[derive(Args, Debug)]
pub struct Flags {
    /// Directory with the hooks
    #[arg(long, env = "SHELL_OPERATOR_HOOKS_DIR", value_name = "DIR", alias = "working-dir")]
    hooks_dir: Option<PathBuf>,
    /// Reload hooks that change while the operator runs
    #[arg(
        long,
        env = "SHELL_OPERATOR_HOOKS_RELOAD",
        value_name = "BOOL",
        default_value = "false",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "true",
        action = clap::ArgAction::Set,
        value_parser = switch
    )]
    hooks_reload: bool,
    /// Directory for temporary files
    #[arg(long, env = "SHELL_OPERATOR_TMP_DIR", value_name = "DIR", default_value = "/tmp/shell-operator")]
    tmp_dir: PathBuf,
    /// Address on which metrics and health are served
    #[arg(long, env = "SHELL_OPERATOR_LISTEN_ADDRESS", value_name = "ADDRESS", default_value = "0.0.0.0", value_parser = host)]
    listen_address: IpAddr,
    /// Port on which metrics and health are served
    #[arg(long, env = "SHELL_OPERATOR_LISTEN_PORT", value_name = "PORT", default_value = "9115")]
    listen_port: u16,
    /// Prefix of the operator's own metrics
    #[arg(
        long,
        env = "SHELL_OPERATOR_PROMETHEUS_METRICS_PREFIX",
        value_name = "PREFIX",
        default_value = "shell_operator_"
    )]
    prometheus_metrics_prefix: String,
    /// Also include the metrics of hooks in /metrics
    #[arg(long, env = "SHELL_OPERATOR_HOOK_METRICS_IN_MAIN", value_parser = switch)]
    hook_metrics_in_main: bool,
    /// Namespace of the operator
    #[arg(long, env = "SHELL_OPERATOR_NAMESPACE", value_name = "NAMESPACE", default_value = "")]
    namespace: String,
    /// Make only one of several replicas active, by leader election; needs --namespace
    #[arg(long, env = "LEADER_ELECTION", requires = "namespace", value_parser = switch)]
    leader_election: bool,
    /// Lease of the leader election
    #[arg(long, env = "LEADER_ELECTION_LEASE", value_name = "NAME", default_value = "shell-operator")]
    leader_election_lease: String,
    /// Time that running hooks have to finish when the operator stops; they get SIGTERM 10 s before its end
    #[arg(long, env = "SHELL_OPERATOR_SHUTDOWN_TIMEOUT", value_name = "DURATION", default_value = "30s", value_parser = go_duration)]
    shutdown_timeout: Duration,
    #[command(flatten)]
    kube: KubeFlags,
    #[command(flatten)]
    webhooks: WebhookFlags,
    #[command(flatten)]
    log: LogFlags,
    /// Keep the files of each run
    #[arg(long, env = "DEBUG_KEEP_TMP_FILES", hide = true, value_parser = switch)]
    debug_keep_tmp_files: bool,
    /// Log the actions of the Kubernetes client
    #[arg(long, env = "DEBUG_KUBERNETES_API", hide = true, value_parser = switch)]
    debug_kubernetes_api: bool,
    /// Unix socket for the debug commands
    #[arg(
        long,
        env = "DEBUG_UNIX_SOCKET",
        hide = true,
        default_value = SOCKET
    )]
    debug_unix_socket: PathBuf,
    /// Additional address of the debug endpoint, such as 127.0.0.1:9652; clients need no authentication
    #[arg(
        long,
        env = "DEBUG_HTTP_SERVER_ADDR",
        hide = true,
        value_name = "ADDRESS",
        value_parser = host_and_port
    )]
    debug_http_addr: Option<SocketAddr>,
    /// Accepted without effect: filters have no modules
    #[arg(
        long,
        env = "JQ_LIBRARY_PATH",
        hide = true,
        value_name = "DIR",
        default_value = "",
        hide_default_value = true
    )]
    jq_library_path: String,
}

#[derive(Args, Debug)]
struct KubeFlags {
    /// Context of the kubeconfig
    #[arg(long, env = "KUBE_CONTEXT", value_name = "NAME", default_value = "", hide_default_value = true)]
    kube_context: String,
    /// Kubeconfig [default: KUBECONFIG, ~/.kube/config or the pod's service account]
    #[arg(long, env = "KUBE_CONFIG", value_name = "FILE", default_value = "", hide_default_value = true)]
    kube_config: String,
    /// URL of the API server, instead of the URL in the kubeconfig
    #[arg(long, env = "KUBE_SERVER", value_name = "URL", default_value = "", hide_default_value = true)]
    kube_server: String,
    /// At start, stop if the API server does not answer within this time [default: retry forever]
    #[arg(long, env = "KUBE_TIMEOUT", value_name = "DURATION", value_parser = go_duration)]
    kube_timeout: Option<Duration>,
    /// Maximum number of list and watch requests per second; the pages of a list count as one request
    #[arg(long, env = "KUBE_CLIENT_QPS", value_name = "NUMBER", default_value = "5", value_parser = rate)]
    kube_client_qps: f64,
    /// Number of list and watch requests in a burst, above the rate of --kube-client-qps
    #[arg(long, env = "KUBE_CLIENT_BURST", value_name = "NUMBER", default_value_t = 10)]
    kube_client_burst: u32,
    /// Maximum number of object patch requests per second
    #[arg(long, env = "OBJECT_PATCHER_KUBE_CLIENT_QPS", value_name = "NUMBER", default_value = "5", value_parser = rate)]
    object_patcher_kube_client_qps: f64,
    /// Number of object patch requests in a burst, above the rate of --object-patcher-kube-client-qps
    #[arg(long, env = "OBJECT_PATCHER_KUBE_CLIENT_BURST", value_name = "NUMBER", default_value_t = 10)]
    object_patcher_kube_client_burst: u32,
    /// Timeout of an object patch request
    #[arg(long, env = "OBJECT_PATCHER_KUBE_CLIENT_TIMEOUT", value_name = "DURATION", default_value = "10s", value_parser = go_duration)]
    object_patcher_kube_client_timeout: Duration,
}

#[derive(Args, Debug)]
#[expect(clippy::struct_field_names, reason = "flags are named after their fields")]
struct LogFlags {
    /// Log level: error, warn, info, debug or trace
    #[arg(long, env = "LOG_LEVEL", value_name = "LEVEL", default_value = "info")]
    log_level: Level,
    /// Format of the log
    #[arg(long, env = "LOG_TYPE", value_name = "TYPE", default_value = "text")]
    log_type: LogType,
    /// Omit the time in the log
    #[arg(long, env = "LOG_NO_TIME", value_parser = switch)]
    log_no_time: bool,
    /// Parse all JSON lines that hooks print as log entries
    #[arg(long, env = "LOG_PROXY_HOOK_JSON", value_parser = switch)]
    log_proxy_hook_json: bool,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum LogType {
    Text,
    Json,
    /// The same as text.
    Color,
}

fn go_duration(text: &str) -> Result<Duration, String> {
    duration::parse(text).ok_or_else(|| format!("'{text}' is not a duration like 10s or 1m30s"))
}

/// Requests a second: 0 for no limit, and at least one in 1000 s, which is in practice the same as none.
fn rate(text: &str) -> Result<f64, String> {
    let number = text.parse().ok().filter(|number: &f64| *number == 0.0 || (0.001..=1e6).contains(number));
    number.ok_or_else(|| {
        format!("'{text}' is not a number of requests a second (0.001 to 1000000, or 0 for no limit)")
    })
}

impl Flags {
    /// The settings that the flags make. Programs without hooks in a directory set `hooks_dir` to `None`.
    pub fn settings(self) -> Settings {
        let Self { kube, log, webhooks, .. } = self;
        let hooks_dir = self.hooks_dir.or_else(old_hooks_dir).unwrap_or_else(|| "hooks".into());
        let some = |text: String| Some(text).filter(|text| !text.is_empty());
        Settings {
            hooks_dir: Some(hooks_dir),
            hooks_reload: self.hooks_reload,
            tmp_dir: self.tmp_dir,
            listen: Some(SocketAddr::new(self.listen_address, self.listen_port)),
            metrics_prefix: self.prometheus_metrics_prefix,
            hook_metrics_in_main: self.hook_metrics_in_main,
            client: ClientSettings {
                kubeconfig: some(kube.kube_config)
                    .or_else(|| old("SHELL_OPERATOR_KUBE_CONFIG"))
                    .map(PathBuf::from),
                context: some(kube.kube_context).or_else(|| old("SHELL_OPERATOR_KUBE_CONTEXT")),
                server: some(kube.kube_server),
                timeout: None,
                retry: false,
                limit: Some(RateLimit { qps: kube.kube_client_qps, burst: kube.kube_client_burst }),
            },
            kube_timeout: kube.kube_timeout,
            patcher_qps: kube.object_patcher_kube_client_qps,
            patcher_burst: kube.object_patcher_kube_client_burst,
            patcher_timeout: kube.object_patcher_kube_client_timeout,
            lease: self
                .leader_election
                .then(|| LeaseName { namespace: self.namespace.clone(), name: self.leader_election_lease }),
            webhooks: webhooks.settings(self.namespace),
            shutdown_timeout: self.shutdown_timeout,
            debug_socket: Some(self.debug_unix_socket),
            debug_http: self.debug_http_addr,
            keep_tmp_files: self.debug_keep_tmp_files,
            proxy_hook_json: log.log_proxy_hook_json,
        }
    }

    /// The log that the flags request, on stderr: for a subscriber of `tracing`, and its `logger` for
    /// [`Builder::logger`](crate::operator::Builder::logger).
    pub fn log_layer(&self) -> LogLayer {
        let log = &self.log;
        let format = match log.log_type {
            LogType::Json => Format::Json,
            LogType::Text | LogType::Color => Format::Text,
        };
        let logger = Logger::new(format, !log.log_no_time, log.log_level, Box::new(std::io::stderr()));
        LogLayer { logger, libraries: self.debug_kubernetes_api }
    }

    /// Warns of settings without effect, so that no user waits for their effect.
    pub fn warn_of_unused(&self) {
        if !self.jq_library_path.is_empty() {
            tracing::warn!(
                "--jq-library-path is not used: a jqFilter can neither import nor include modules"
            );
        }
        if std::env::var_os("TRACING_OTLP_ENDPOINT").is_some_and(|endpoint| !endpoint.is_empty()) {
            tracing::warn!("TRACING_OTLP_ENDPOINT is not used: traces are not exported");
        }
    }
}

/// The first releases used this name for the directory; images made for them still set it.
fn old_hooks_dir() -> Option<PathBuf> {
    old("SHELL_OPERATOR_WORKING_DIR").map(PathBuf::from)
}

/// A variable of the environment by its former name.
fn old(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|text| !text.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_have_bounds() {
        for (text, expected) in
            [("0", Some(0.0)), ("0.5", Some(0.5)), ("-1", None), ("1e-9", None), ("NaN", None), ("inf", None)]
        {
            assert_eq!(rate(text).ok(), expected, "{text}");
        }
    }
}
