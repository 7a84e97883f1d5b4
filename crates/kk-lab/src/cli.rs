//! The command line.

use std::path::PathBuf;

use clap::builder::PossibleValuesParser;
use clap::{Args, Parser, Subcommand, ValueEnum};

/// Throw-away hosts on this machine, and a mirror of everything a cluster needs.
///
/// Hosts are systemd-nspawn containers with a real systemd and sshd (or virtual machines), in a network without a way out. Everything
/// that runs on them is built here from Go modules and Debian packages. Needs root on Debian or Ubuntu.
#[derive(Parser)]
#[command(name = "kk-lab", version, after_help = EXAMPLES)]
pub(crate) struct Cli {
    /// Which lab of this machine; each has hosts and a network of its own
    #[arg(long, value_name = "NUMBER", env = "KK_LAB_NUMBER", default_value_t = 1, global = true,
        value_parser = clap::value_parser!(u8).range(1..=i64::from(crate::sys::instance::MOST)))]
    pub(crate) lab: u8,
    #[command(subcommand)]
    pub(crate) command: Command,
}

const EXAMPLES: &str = "Examples:
  kk-lab up --hosts 3 --config cluster.yaml     boot three hosts, write the cluster file for them
  kk-lab enter -- kk create cluster -f cluster.yaml
  kk-lab exec node1 -- kubectl get nodes        run a command on a host (not by SSH)
  kk-lab up --hosts 3 --fresh                   the same hosts, new from the ground
  kk-lab up --host node2 --real-kernel          node2 as a virtual machine beside the others
  kk-lab up --hosts 3 --cpus 0.2 --delay 100ms  slow hosts, far away
  kk-lab power off node2                        a power cut; `power on` boots it with its disk
  kk-lab down --host node2                      node2 away, with its disk
  kk-lab down                                   remove everything but the cache
  kk-lab --lab 2 up --hosts 3                   a second lab next to the first one

Environment:
  KK_LAB_CACHE  what is built once (3 GB, see `kk-lab mirror prune`) [default: $XDG_CACHE_HOME/kk-lab, ~/.cache/kk-lab]
  KK_LAB_DATA   versions and Go modules [default: tests/lab of the checkout it was built from]";

#[derive(Subcommand)]
pub(crate) enum Command {
    /// Boot hosts, start mirror and registry, write a cluster file
    Up(Up),
    /// End hosts and servers and remove all they left; the cache stays
    Down {
        /// Only this host, with its disk
        #[arg(long)]
        host: Option<String>,
        /// All labs of this machine
        #[arg(long, conflicts_with = "host")]
        all: bool,
    },
    /// Switch a host off as a power cut would, or on again as it was
    Power {
        #[arg(value_enum)]
        state: Power,
        host: String,
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
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u8).range(1..=i64::from(crate::hosts::MOST_HOSTS)))]
    pub(crate) hosts: u8,
    /// Boot only this host, fresh, in a lab that is up
    #[arg(long, conflicts_with_all = ["hosts", "config"])]
    pub(crate) host: Option<String>,
    /// Boot the hosts again from their base even when they run
    #[arg(long)]
    pub(crate) fresh: bool,
    /// Kubernetes version of the cluster file; given again: further versions for the mirror
    #[arg(long, value_name = "VERSION")]
    pub(crate) kubernetes: Vec<String>,
    /// Also this component, or this version of one, which the mirror has only on demand
    #[arg(long, value_name = "COMPONENT[=VERSION]")]
    pub(crate) with: Vec<String>,
    /// Where the cluster file is written [default: cluster.yaml in the lab's state directory]
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// Let the cluster file log in as this user, who is made on every host
    #[arg(long, requires = "sudo_password")]
    pub(crate) user: Option<String>,
    /// Password that user needs for sudo (of a throw-away host, so an argument will do)
    #[arg(long, env = "KK_LAB_SUDO_PASSWORD", hide_env_values = true)]
    pub(crate) sudo_password: Option<String>,
    /// Debian release of the hosts
    #[arg(long, default_value = crate::base::SUITE, value_parser = PossibleValuesParser::new(crate::base::SUITES))]
    pub(crate) suite: String,
    /// Network cards of each host; a second one has the default route, as a cloud's public network has
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u8).range(1..=2))]
    pub(crate) networks: u8,
    /// Processors that each host may use, such as 0.2
    #[arg(long, value_name = "NUMBER", value_parser = processors)]
    pub(crate) cpus: Option<f64>,
    /// How much longer a packet takes to each host and back, such as 100ms
    #[arg(long, value_name = "MILLISECONDS", value_parser = milliseconds)]
    pub(crate) delay: Option<u32>,
    /// Virtual machines with a kernel of their own and cgroup v2 instead of containers: slower, emulated by QEMU
    #[arg(long, conflicts_with = "user")]
    pub(crate) real_kernel: bool,
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
        /// Also this component, or this version of one, which the mirror has only on demand
        #[arg(long, value_name = "COMPONENT[=VERSION]")]
        with: Vec<String>,
        /// Only the programs of these components (`kubernetes,etcd`), and print `component<TAB>directory` for each; needs
        /// no root, installs and publishes nothing. Not for what is made of Debian packages
        #[arg(long, value_name = "COMPONENT", value_delimiter = ',')]
        programs: Vec<String>,
    },
    /// Remove from the cache what this checkout does not ask for (any more); the next `up` publishes again
    Prune,
    /// Serve the mirror until it is ended; `up` starts it inside the lab
    Serve {
        /// Address and port
        #[arg(long, default_value = "172.30.0.1:8080")]
        listen: String,
    },
}

/// What `power` does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Power {
    Off,
    On,
}

fn processors(text: &str) -> Result<f64, String> {
    let number: f64 = text.parse().map_err(|_| "not a number, such as 0.2".to_owned())?;
    if (0.01..=64.0).contains(&number) { Ok(number) } else { Err("between 0.01 and 64".to_owned()) }
}

fn milliseconds(text: &str) -> Result<u32, String> {
    let digits = text.strip_suffix("ms").ok_or("a number of milliseconds, such as 100ms")?;
    digits.parse().map_err(|_| "a number of milliseconds, such as 100ms".to_owned())
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

    #[test]
    fn shares_of_processors_and_delays_are_read() {
        assert_eq!(super::processors("0.2"), Ok(0.2));
        assert!(super::processors("0").is_err() && super::processors("NaN").is_err());
        assert_eq!(super::milliseconds("100ms"), Ok(100));
        assert!(super::milliseconds("100").is_err() && super::milliseconds("-1ms").is_err());
    }
}
