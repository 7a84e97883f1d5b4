//! Options of the commands that work on hosts.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use kk_config::KubeVersion;
use kk_connector::HostKeyPolicy;

use super::{artifact::SignatureOptions, versions_given};

const CREATE_EXAMPLES: &str = "\
Examples:
  kk create cluster -f cluster.yaml              create the cluster, or repair it
  kk create cluster -f cluster.yaml --dry-run    only show what would be done, host by host
  kk create cluster --with-kubernetes v1.35.4    a cluster with only the local host (as root)
  kk create cluster -f cluster.yaml -a kk-bundle.tar.zst --public-key minisign.pub --with-packages
  kk create cluster -f cluster.yaml --with-kubesphere v3.4.1
  kk create cluster -f cluster.yaml -y --output json > events.jsonl";

const DELETE_EXAMPLES: &str = "\
Examples:
  kk delete cluster -f cluster.yaml              remove the cluster, keep the container runtime
  kk delete cluster -f cluster.yaml --all        also remove the container runtime and its images
  kk delete cluster -f cluster.yaml --dry-run    only show what would be removed";

/// Options of `kk create cluster`.
#[derive(Debug, Args)]
#[command(after_help = CREATE_EXAMPLES)]
pub struct CreateCluster {
    /// Configuration file, or - for stdin; without it the local host is the only node of the cluster
    #[arg(short, long, value_name = "FILE")]
    pub filename: Option<PathBuf>,

    /// Kubernetes version, instead of the one in the file
    #[arg(long, value_name = "VERSION", value_parser = versions_given::kubernetes)]
    pub with_kubernetes: Option<KubeVersion>,

    /// Also install KubeSphere; a VERSION must match the payload in spec.kubesphere.image
    #[arg(long, value_name = "VERSION", num_args = 0..=1, default_missing_value = "", requires = "filename")]
    pub with_kubesphere: Option<String>,

    #[command(flatten)]
    #[expect(missing_docs, reason = "documented at the type")]
    pub source: SourceOptions,

    /// Also install missing system packages from the bundle
    #[arg(long, requires = "artifact")]
    pub with_packages: bool,

    /// Do not pull images in advance: the kubelet pulls an image when a pod needs it
    #[arg(long, conflicts_with = "artifact")]
    pub skip_pull_images: bool,

    /// Do not install the addons in spec.addons, except those with `phase: network`; installed addons stay as they are
    #[arg(long)]
    pub skip_install_addons: bool,

    /// Accepted for compatibility with KubeKey, without effect: only `kk artifact images push` pushes images
    #[arg(long)]
    pub skip_push_images: bool,

    /// Container runtime
    #[arg(long, value_name = "NAME", default_value = "containerd", hide_default_value = true)]
    pub container_manager: ContainerManager,

    #[command(flatten)]
    #[expect(missing_docs, reason = "documented at the type")]
    pub run: RunOptions,
}

/// Options of `kk delete cluster`.
#[derive(Debug, Args)]
#[command(after_help = DELETE_EXAMPLES)]
pub struct DeleteCluster {
    /// Configuration file, or - for stdin; without it the local host is the only node of the cluster
    #[arg(short, long, value_name = "FILE")]
    pub filename: Option<PathBuf>,

    /// Also remove the container runtime with its images and data
    #[arg(short = 'A', long)]
    pub all: bool,

    /// Do not uninstall KubeSphere before the hosts are cleaned
    #[arg(long)]
    pub skip_kubesphere: bool,

    #[command(flatten)]
    #[expect(missing_docs, reason = "documented at the type")]
    pub run: RunOptions,
}

/// The source of binaries, images and templates.
#[derive(Debug, Args)]
pub struct SourceOptions {
    /// Offline bundle: take binaries and images from it and download nothing
    #[arg(short, long, value_name = "FILE")]
    pub artifact: Option<PathBuf>,

    #[command(flatten)]
    #[expect(missing_docs, reason = "documented at the type")]
    pub signature: SignatureOptions,

    /// Directory with templates that replace built-in templates with the same path
    #[arg(long, value_name = "DIR", value_parser = directory)]
    pub templates: Option<PathBuf>,
}

/// Options of every command that works on hosts.
#[derive(Debug, Args)]
pub struct RunOptions {
    /// Do not ask for confirmation before the first change
    #[arg(short, long)]
    pub yes: bool,

    /// Check the hosts and show what would be done, but change nothing
    #[arg(long)]
    pub dry_run: bool,

    /// Write every script with its exit code and stderr to debug.log in the log directory of the run
    #[arg(long)]
    pub debug: bool,

    /// If a host fails, continue with the other hosts; the run still ends with an error
    #[arg(long)]
    pub ignore_err: bool,

    /// Accepted for compatibility with KubeKey, without effect: kk stores nothing in the cluster
    #[arg(long, value_name = "NAME", default_value = "kubekey-system", hide_default_value = true)]
    pub namespace: String,

    /// Maximum number of hosts that work at once [default: all, up to 300]
    #[arg(long, value_name = "N", value_parser = at_least_one)]
    pub forks: Option<usize>,

    /// Maximum number of hosts that receive large files at once [default: 10]
    #[arg(long, value_name = "N", value_parser = at_least_one)]
    pub upload_forks: Option<usize>,

    /// How to check SSH host keys
    #[arg(long, value_name = "HOW", default_value = "accept-new")]
    pub host_key_checking: HostKeyChecking,

    /// Directory for downloads, certificates, kubeconfigs and logs
    #[arg(long, value_name = "DIR", default_value = "./kubekey")]
    pub workdir: PathBuf,

    #[command(flatten)]
    #[expect(missing_docs, reason = "documented at the type")]
    pub output: OutputOptions,
}

/// How progress is shown.
#[derive(Clone, Copy, Debug, Args)]
pub struct OutputOptions {
    /// Print plain lines instead of a live view (the default without a terminal or if CI is set)
    #[arg(long)]
    pub no_progress: bool,

    /// Output: progress as text on stderr, or events on stdout as one JSON object per line
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    pub output: OutputFormat,
}

/// How progress and results are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum OutputFormat {
    /// Text for people
    Text,
    /// JSON for other programs
    Json,
}

/// How to check the key of a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum HostKeyChecking {
    /// Refuse hosts that are not in `known_hosts`
    Strict,
    /// Store the key of a new host, refuse a changed key
    AcceptNew,
    /// Accept any key (an attacker in between would get the password)
    Off,
}

impl From<HostKeyChecking> for HostKeyPolicy {
    fn from(checking: HostKeyChecking) -> Self {
        match checking {
            HostKeyChecking::Strict => Self::Strict,
            HostKeyChecking::AcceptNew => Self::AcceptNew,
            HostKeyChecking::Off => Self::Off,
        }
    }
}

/// Container runtimes that can be asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ContainerManager {
    /// The only supported runtime
    Containerd,
}

/// Refuses a missing directory: with a misspelt name, kk would use the built-in templates.
pub(super) fn directory(text: &str) -> Result<PathBuf, String> {
    let path = PathBuf::from(text);
    if path.is_dir() { Ok(path) } else { Err("the directory does not exist".into()) }
}

fn at_least_one(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(0) => Err("must be at least 1".into()),
        Ok(number) => Ok(number),
        Err(_) => Err("not a number".into()),
    }
}
