//! Options of `kk upgrade`.

use std::{path::PathBuf, time::Duration};

use clap::{Args, builder::PossibleValuesParser};
use kk_artifact::Component;
use kk_config::Components;
use kk_engine::Most;

use super::cluster::{RunOptions, SourceOptions};
use super::duration;

const EXAMPLES: &str = "\
Examples:
  kk upgrade -f cluster.yaml                              to the version of the file
  kk upgrade -f cluster.yaml --with-kubernetes v1.37.1    to this version; then put it into the file
  kk upgrade -f cluster.yaml --dry-run                    the way there, and what changes
  kk upgrade -f cluster.yaml --with-etcd 3.6.14           this version of etcd
  kk upgrade -f cluster.yaml --hold etcd,containerd       these keep their versions
  kk upgrade -f cluster.yaml --max-unavailable 3          three workers at once
  kk upgrade -f cluster.yaml -a kk-bundle.tar.zst --public-key minisign.pub    from a bundle

Control planes are upgraded one after the other, then workers. Each node is drained before, and
takes pods again once it is Ready with its new version. An upgrade that ended early goes on when it
is run again.";

/// Options of `kk upgrade`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Upgrade {
    /// Configuration file of the cluster, or - for stdin
    #[arg(short, long, value_name = "FILE")]
    pub filename: PathBuf,

    /// Kubernetes version, instead of the one in the file
    #[arg(long, value_name = "VERSION")]
    pub with_kubernetes: Option<String>,

    /// Install or change KubeSphere, too; a version must be the one of the payload in spec.kubesphere.image
    #[arg(long, value_name = "VERSION", num_args = 0..=1, default_missing_value = "")]
    pub with_kubesphere: Option<String>,

    #[command(flatten)]
    #[expect(missing_docs, reason = "documented at the type")]
    pub components: ComponentOptions,

    /// How many workers are drained at once: a number, or a share of all workers like 25%
    #[arg(long, value_name = "COUNT", default_value = "1", value_parser = most)]
    pub max_unavailable: Most,

    /// Delete pods without a controller, and after the drain timeout those that a disruption budget keeps
    #[arg(long)]
    pub force: bool,

    /// How long the eviction of a node's pods may take
    #[arg(long, value_name = "TIME", default_value = "5m", value_parser = duration::limit)]
    pub drain_timeout: Duration,

    #[command(flatten)]
    #[expect(missing_docs, reason = "documented at the type")]
    pub source: SourceOptions,

    #[command(flatten)]
    #[expect(missing_docs, reason = "documented at the type")]
    pub run: RunOptions,
}

/// Versions of what has one of its own.
#[derive(Debug, Args)]
pub struct ComponentOptions {
    /// Version of etcd, instead of the one in the file or the one that goes with Kubernetes
    #[arg(long, value_name = "VERSION")]
    with_etcd: Option<String>,

    /// The same for containerd
    #[arg(long, value_name = "VERSION")]
    with_containerd: Option<String>,

    /// The same for runc
    #[arg(long, value_name = "VERSION")]
    with_runc: Option<String>,

    /// The same for the CNI plugins
    #[arg(long, value_name = "VERSION")]
    with_cni_plugins: Option<String>,

    /// The same for crictl
    #[arg(long, value_name = "VERSION")]
    with_crictl: Option<String>,

    /// The same for CoreDNS
    #[arg(long, value_name = "VERSION")]
    with_coredns: Option<String>,

    /// Keep the version that the cluster has of these, whatever the file says
    #[arg(long, value_name = "NAME", value_delimiter = ',', value_parser = held_names(), hide_possible_values = true)]
    hold: Vec<String>,
}

impl ComponentOptions {
    /// The versions that are given.
    pub fn given(&self) -> Components {
        Components {
            etcd: self.with_etcd.clone(),
            containerd: self.with_containerd.clone(),
            runc: self.with_runc.clone(),
            cni: self.with_cni_plugins.clone(),
            crictl: self.with_crictl.clone(),
            coredns: self.with_coredns.clone(),
            ..Components::default()
        }
    }

    /// What keeps its version.
    pub fn held(&self) -> Vec<Component> {
        let named = |component: &Component| self.hold.iter().any(|name| name == component.name());
        Component::versioned().filter(named).collect()
    }
}

fn held_names() -> PossibleValuesParser {
    PossibleValuesParser::new(Component::versioned().map(Component::name))
}

fn most(text: &str) -> Result<Most, String> {
    let wrong = || "expected a number from 1, or a share from 1% to 100%".to_owned();
    match text.strip_suffix('%') {
        Some(share) => share.parse().ok().filter(|share| (1..=100).contains(share)).map(Most::Percent),
        None => text.parse().ok().filter(|hosts| *hosts > 0).map(Most::Hosts),
    }
    .ok_or_else(wrong)
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;

    #[test]
    fn workers_at_once_are_a_number_or_a_share() {
        for (text, most) in [
            ("1", Some(Most::Hosts(1))),
            ("12", Some(Most::Hosts(12))),
            ("25%", Some(Most::Percent(25))),
            ("100%", Some(Most::Percent(100))),
            ("0", None),
            ("0%", None),
            ("101%", None),
            ("-1", None),
            ("", None),
            ("%", None),
            ("half", None),
        ] {
            assert_eq!(super::most(text).ok(), most, "{text}");
        }
    }

    #[test]
    fn what_is_held_is_named_as_in_the_catalogue() {
        let parse = |hold: &str| {
            let words = ["kk", "upgrade", "-f", "x", "--hold", hold, "--with-runc", "1.4.3"];
            let cli = crate::args::Cli::try_parse_from(words).map_err(|error| error.to_string())?;
            let crate::args::Command::Upgrade(upgrade) = cli.command else { unreachable!() };
            Ok::<_, String>(upgrade.components)
        };
        let components = parse("cni-plugins,etcd").unwrap();
        assert_eq!(components.held(), [Component::Etcd, Component::CniPlugins]);
        assert_eq!(components.given().runc.as_deref(), Some("1.4.3"));
        for unknown in ["kubelet", "etdc", ""] {
            let error = parse(unknown).unwrap_err();
            assert!(error.contains("etcd, containerd, runc, cni-plugins"), "{error}");
        }
    }
}
