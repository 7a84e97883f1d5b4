//! Options of the commands that work on hosts.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use kk_connector::HostKeyPolicy;

use super::artifact::SignatureOptions;

const CREATE_EXAMPLES: &str = "\
Examples:
  kk create cluster -f cluster.yaml              create it, or bring it back to what the file says
  kk create cluster -f cluster.yaml --dry-run    only show what would be done, host by host
  kk create cluster --with-kubernetes v1.36.4    a cluster of this machine alone (as root)
  kk create cluster -f cluster.yaml -a kk-bundle.tar.zst --public-key minisign.pub --with-packages
  kk create cluster -f cluster.yaml --with-kubesphere v3.4.1
  kk create cluster -f cluster.yaml -y --output json > events.jsonl";

const DELETE_EXAMPLES: &str = "\
Examples:
  kk delete cluster -f cluster.yaml              remove the cluster, keep the container runtime
  kk delete cluster -f cluster.yaml --all        remove the container runtime and its images, too
  kk delete cluster -f cluster.yaml --dry-run    only show what would be removed";

/// Options of `kk create cluster`.
#[derive(Debug, Args)]
#[command(after_help = CREATE_EXAMPLES)]
pub struct CreateCluster {
    /// Configuration file, or - for stdin; without it the cluster consists of this machine alone
    #[arg(short, long, value_name = "FILE")]
    pub filename: Option<PathBuf>,

    /// Kubernetes version, instead of the one in the file
    #[arg(long, value_name = "VERSION")]
    pub with_kubernetes: Option<String>,

    /// Install KubeSphere, too; a version must be the one of the payload in spec.kubesphere.image
    #[arg(long, value_name = "VERSION", num_args = 0..=1, default_missing_value = "", requires = "filename")]
    pub with_kubesphere: Option<String>,

    #[command(flatten)]
    #[expect(missing_docs, reason = "documented at the type")]
    pub source: SourceOptions,

    /// Also install, from the bundle, packages of the system with programs that hosts lack
    #[arg(long, requires = "artifact")]
    pub with_packages: bool,

    /// Leave it to the kubelet to pull images when a pod needs them
    #[arg(long, conflicts_with = "artifact")]
    pub skip_pull_images: bool,

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
    /// Configuration file, or - for stdin; without it the cluster consists of this machine alone
    #[arg(short, long, value_name = "FILE")]
    pub filename: Option<PathBuf>,

    /// Remove the container runtime with its images and data, too
    #[arg(short = 'A', long)]
    pub all: bool,

    /// Let KubeSphere go with the hosts, instead of having it removed before them
    #[arg(long)]
    pub skip_kubesphere: bool,

    #[command(flatten)]
    #[expect(missing_docs, reason = "documented at the type")]
    pub run: RunOptions,
}

/// Where what is brought to hosts comes from.
#[derive(Debug, Args)]
pub struct SourceOptions {
    /// Offline bundle: programs and images come from it, and nothing is downloaded
    #[arg(short, long, value_name = "FILE")]
    pub artifact: Option<PathBuf>,

    #[command(flatten)]
    #[expect(missing_docs, reason = "documented at the type")]
    pub signature: SignatureOptions,

    /// Directory with templates that replace the built-in ones of the same path
    #[arg(long, value_name = "DIR", value_parser = directory)]
    pub templates: Option<PathBuf>,
}

/// Options of every command that works on hosts.
#[derive(Debug, Args)]
pub struct RunOptions {
    /// Do not ask before the first change
    #[arg(short, long)]
    pub yes: bool,

    /// Look at the hosts, show what would be done, and change nothing
    #[arg(long)]
    pub dry_run: bool,

    /// Write every script, its exit code and its errors to debug.log in the directory of the run
    #[arg(long)]
    pub debug: bool,

    /// Drop a host that fails and go on with the others; the run still ends with an error
    #[arg(long)]
    pub ignore_err: bool,

    /// Accepted for KubeKey's scripts; has no effect, because nothing is stored in the cluster
    #[arg(long, value_name = "NAME", default_value = "kubekey-system", hide_default_value = true)]
    pub namespace: String,

    /// How many hosts work at once [default: all, up to 300]
    #[arg(long, value_name = "N", value_parser = at_least_one)]
    pub forks: Option<usize>,

    /// How many hosts receive large files at once [default: 10]
    #[arg(long, value_name = "N", value_parser = at_least_one)]
    pub upload_forks: Option<usize>,

    /// What to do with SSH host keys
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
    /// Print plain lines instead of a live view (as without a terminal, or with CI set)
    #[arg(long)]
    pub no_progress: bool,

    /// Progress for people on stderr, or events on stdout, one JSON object a line
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    pub output: OutputFormat,
}

/// How progress and results are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum OutputFormat {
    /// For people
    Text,
    /// For programs
    Json,
}

/// What to do with the key that a host shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum HostKeyChecking {
    /// Refuse hosts that are not in `known_hosts`
    Strict,
    /// Remember a host at first sight, refuse a changed key
    AcceptNew,
    /// Accept any key (whoever answers gets the password)
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
    /// The only one so far
    Containerd,
}

/// A misspelt directory would mean the built-in templates.
pub(super) fn directory(text: &str) -> Result<PathBuf, String> {
    let path = PathBuf::from(text);
    if path.is_dir() { Ok(path) } else { Err("there is no such directory".into()) }
}

fn at_least_one(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(0) => Err("at least one host has to work".into()),
        Ok(number) => Ok(number),
        Err(_) => Err("not a number".into()),
    }
}
