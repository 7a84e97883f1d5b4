//! Options of the commands that touch no host.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::OutputFormat;

/// Options of `kk create config`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  kk create config                               write config-sample.yaml
  kk create config --name prod -f prod.yaml --with-kubernetes v1.36.4")]
pub struct CreateConfig {
    /// Name of the cluster
    #[arg(long, default_value = "sample")]
    pub name: String,

    /// Kubernetes version [default: the newest tested one]
    #[arg(long, value_name = "VERSION")]
    pub with_kubernetes: Option<String>,

    /// File to write, or - for stdout [default: config-NAME.yaml]
    #[arg(short, long, value_name = "FILE")]
    pub filename: Option<PathBuf>,

    /// What kind of cluster
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

/// Options of `kk config validate`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  kk config validate -f cluster.yaml
  kk config validate -f cluster.yaml --output json
  kk config validate -f - < cluster.yaml")]
pub struct ConfigValidate {
    /// Configuration file, or - for stdin
    #[arg(short, long, value_name = "FILE")]
    pub filename: PathBuf,

    /// Findings for people on stderr, or events on stdout, one JSON object a line
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    pub output: OutputFormat,
}

/// Options of `kk completion`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  kk completion bash > /etc/bash_completion.d/kk
  kk completion zsh > \"${fpath[1]}/_kk\"
  kk completion fish > ~/.config/fish/completions/kk.fish")]
pub struct Completion {
    /// The shell
    #[arg(value_name = "SHELL", ignore_case = true, required_unless_present = "shell_type")]
    pub shell: Option<ShellName>,

    /// The shell, as KubeKey takes it
    #[arg(short = 't', long = "type", value_name = "SHELL", ignore_case = true, conflicts_with = "shell")]
    pub shell_type: Option<ShellName>,
}

/// Shells for which a completion script can be printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
#[expect(missing_docs, reason = "the names say all")]
pub enum ShellName {
    Bash,
    Elvish,
    Fish,
    #[value(name = "powershell")]
    PowerShell,
    Zsh,
}

/// Options of `kk version`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  kk version
  kk version -o json
  kk version --show-supported-k8s")]
pub struct Version {
    /// Form of the answer [default: text for people]
    #[arg(short, long, value_name = "FORMAT")]
    pub output: Option<VersionFormat>,

    /// List the Kubernetes versions with known checksums, one a line
    #[arg(long, conflicts_with = "output")]
    pub show_supported_k8s: bool,
}

/// Forms of `kk version`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum VersionFormat {
    /// A JSON object
    Json,
    /// The same in YAML
    Yaml,
    /// The number alone
    Short,
}
