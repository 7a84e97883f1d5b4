//! Options of `kk create config`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use kk_config::KubeVersion;

use super::versions_given;

/// The version of KubeSphere if the option has no value, as in KubeKey.
const KUBESPHERE: &str = "v3.4.1";

/// Options of `kk create config`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  kk create config                               write config-sample.yaml
  kk create config --name prod -f prod.yaml --with-kubernetes v1.35.4
  kk create config --from-cluster --name prod    write the file of the cluster of ~/.kube/config")]
pub struct CreateConfig {
    /// Name of the cluster
    #[arg(long, default_value = "sample")]
    pub name: String,

    /// Kubernetes version [default: shown by `kk version`]
    #[arg(long, value_name = "VERSION", value_parser = versions_given::kubernetes)]
    pub with_kubernetes: Option<KubeVersion>,

    /// Also write a ClusterConfiguration, with which KubeSphere is installed [default version: v3.4.1]
    #[arg(long, value_name = "VERSION", num_args = 0..=1, default_missing_value = KUBESPHERE, value_parser = versions_given::kubesphere)]
    pub with_kubesphere: Option<String>,

    /// Write the file of a running cluster of kubeadm, KubeKey or kk, which kubectl queries
    #[arg(long, conflicts_with_all = ["with_kubernetes", "with_kubesphere", "style"])]
    pub from_cluster: bool,

    /// Kubeconfig of the running cluster [default: as kubectl]
    #[arg(long, value_name = "FILE", requires = "from_cluster")]
    pub kubeconfig: Option<PathBuf>,

    /// File to write, or - for stdout [default: config-NAME.yaml]
    #[arg(short, long, value_name = "FILE")]
    pub filename: Option<PathBuf>,

    /// Kind of cluster
    #[arg(long, value_name = "KIND", default_value = "three-nodes")]
    pub style: Style,

    /// Overwrite the file if it exists
    #[arg(short = 'y', long = "yes", visible_alias = "force")]
    pub overwrite: bool,
}

/// The samples that can be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Style {
    /// One host with every role
    AllInOne,
    /// One control plane and two workers
    ThreeNodes,
    /// Three control planes behind a load balancer
    Ha,
    /// A mirror and a private registry
    Offline,
}
