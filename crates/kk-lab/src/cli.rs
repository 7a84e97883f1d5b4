//! The command line.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

/// Throw-away hosts on this machine, and a mirror of everything a cluster needs.
///
/// Hosts are systemd-nspawn containers with a real systemd and sshd, in a network without a way out. Everything
/// that runs on them is built here from Go modules and Debian packages. Needs root on Debian or Ubuntu.
#[derive(Parser)]
#[command(name = "kk-lab", version, after_help = EXAMPLES)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

const EXAMPLES: &str = "Examples:
  kk-lab up --hosts 3 --config cluster.yaml     boot three hosts, write the cluster file for them
  kk-lab enter -- kk create cluster -f cluster.yaml
  kk-lab exec node1 -- kubectl get nodes        run a command on a host (not by SSH)
  kk-lab up --hosts 3 --fresh                   the same hosts, new from the ground
  kk-lab down --host node2                      a power cut for one host
  kk-lab down                                   everything away, but the cache

Environment:
  KK_LAB_CACHE  what is built once (3 GB, see `kk-lab mirror prune`) [default: $XDG_CACHE_HOME/kk-lab, ~/.cache/kk-lab]
  KK_LAB_DATA   versions and Go modules [default: tests/lab of the checkout it was built from]";

#[derive(Subcommand)]
pub(crate) enum Command {
    /// Boot hosts, start mirror and registry, write a cluster file
    Up(Up),
    /// End hosts and servers and remove all they left; the cache stays
    Down {
        /// Only this host, as a power cut would
        #[arg(long)]
        host: Option<String>,
    },
    /// Show what runs
    Status {
        #[arg(long, value_enum, default_value_t = Output::Text)]
        output: Output,
    },
    /// Run a command on a host as root
    Exec {
        host: String,
        /// Program and arguments, passed as they are
        #[arg(last = true, required = true)]
        command: Vec<String>,
    },
    /// Run a command of this machine inside the lab's network
    Enter {
        /// Program and arguments, passed as they are
        #[arg(last = true, required = true)]
        command: Vec<String>,
    },
    /// What hosts download from
    #[command(subcommand)]
    Mirror(Mirror),
}

/// Not printable: it may hold a password.
#[derive(Args)]
pub(crate) struct Up {
    /// How many hosts; more than that are ended, and the ones that run are kept
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u8).range(1..=i64::from(crate::host::MOST_HOSTS)))]
    pub(crate) hosts: u8,
    /// Boot only this host, anew, in a lab that is up
    #[arg(long, conflicts_with_all = ["hosts", "config"])]
    pub(crate) host: Option<String>,
    /// Boot the hosts anew even when they run
    #[arg(long)]
    pub(crate) fresh: bool,
    /// Kubernetes version of the cluster file; given again: further versions for the mirror
    #[arg(long, value_name = "VERSION")]
    pub(crate) kubernetes: Vec<String>,
    /// Where the cluster file is written [default: /var/lib/kk-lab/cluster.yaml]
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// Let the cluster file log in as this user, who is made on every host
    #[arg(long, requires = "sudo_password")]
    pub(crate) user: Option<String>,
    /// Password that user needs for sudo (of a throw-away host, so an argument will do)
    #[arg(long, env = "KK_LAB_SUDO_PASSWORD", hide_env_values = true)]
    pub(crate) sudo_password: Option<String>,
    /// Only hosts: no mirror, no registry, nothing is built
    #[arg(long)]
    pub(crate) no_mirror: bool,
}

#[derive(Subcommand)]
pub(crate) enum Mirror {
    /// Build all programs and images (minutes; a second run builds nothing)
    Build {
        /// Kubernetes versions [default: the first of versions.yaml]
        #[arg(long, value_name = "VERSION")]
        kubernetes: Vec<String>,
        /// Only the programs of these components (`kubernetes,etcd`), and print `component<TAB>folder` for each; needs
        /// no root, installs and publishes nothing
        #[arg(long, value_name = "COMPONENT", value_delimiter = ',')]
        programs: Vec<String>,
    },
    /// Remove from the cache what this checkout does not ask for (any more); the next `up` publishes anew
    Prune,
    /// Serve the mirror until it is ended; `up` starts it inside the lab
    Serve {
        /// Address and port
        #[arg(long, default_value = "172.30.0.1:8080")]
        listen: String,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Output {
    Text,
    Json,
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent() {
        super::Cli::command().debug_assert();
    }
}
