//! What the operator is told at start.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use crate::cluster::ClientSettings;

/// Settings of an operator.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Directory with the hooks.
    pub hooks_dir: PathBuf,
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
    /// Whether the files of runs are kept.
    pub keep_tmp_files: bool,
    /// Whether all that is JSON in the output of hooks is looked at.
    pub proxy_hook_json: bool,
}
