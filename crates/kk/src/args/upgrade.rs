//! Options of `kk upgrade`.

use std::{path::PathBuf, time::Duration};

use clap::{Args, builder::PossibleValuesParser};
use kk_artifact::Component;
use kk_config::{Components, KubeVersion};
use kk_engine::Most;

use super::cluster::{RunOptions, SourceOptions};
use super::{duration, versions_given};

const EXAMPLES: &str = "\
Examples:
  kk upgrade -f cluster.yaml                              to the version in the file
  kk upgrade -f cluster.yaml --with-kubernetes v1.37.1    to this version; then update the file
  kk upgrade -f cluster.yaml --dry-run                    show intermediate versions and changes
  kk upgrade -f cluster.yaml --with-etcd 3.6.14           with this version of etcd
  kk upgrade -f cluster.yaml --hold etcd,containerd       keep the versions of etcd and containerd
  kk upgrade -f cluster.yaml --max-unavailable 3          upgrade three workers at once
  kk upgrade -f cluster.yaml -a kk-bundle.tar.zst --public-key minisign.pub    from a bundle

Control planes are upgraded one after the other, then the workers. Each node is drained first. It
accepts pods again when it is Ready with the new version. To resume an interrupted upgrade, run it
again.";

/// Options of `kk upgrade`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Upgrade {
    /// Configuration file of the cluster, or - for stdin
    #[arg(short, long, value_name = "FILE")]
    pub filename: PathBuf,

    /// Kubernetes version, instead of the version in the file
    #[arg(long, value_name = "VERSION", value_parser = versions_given::kubernetes)]
    pub with_kubernetes: Option<KubeVersion>,

    /// Also install or update KubeSphere; a VERSION must match the payload in spec.kubesphere.image
    #[arg(long, value_name = "VERSION", num_args = 0..=1, default_missing_value = "")]
    pub with_kubesphere: Option<String>,

    #[command(flatten)]
    #[expect(missing_docs, reason = "documented at the type")]
    pub components: ComponentOptions,

    /// Maximum number of workers to drain at once, or their share of all workers, such as 25%
    #[arg(long, value_name = "COUNT", default_value = "1", value_parser = most)]
    pub max_unavailable: Most,

    /// Delete pods without a controller, and after the drain timeout pods that a disruption budget protects
    #[arg(long)]
    pub force: bool,

    /// Maximum time to evict the pods of a node
    #[arg(long, value_name = "TIME", default_value = "5m", value_parser = duration::limit)]
    pub drain_timeout: Duration,

    #[command(flatten)]
    #[expect(missing_docs, reason = "documented at the type")]
    pub source: SourceOptions,

    #[command(flatten)]
    #[expect(missing_docs, reason = "documented at the type")]
    pub run: RunOptions,
}

/// Versions of components other than Kubernetes.
#[derive(Debug, Args)]
pub struct ComponentOptions {
    /// Version of etcd, instead of the version in the file or the default for the Kubernetes version
    #[arg(long, value_name = "VERSION", value_parser = versions_given::component)]
    with_etcd: Option<String>,

    /// Version of containerd
    #[arg(long, value_name = "VERSION", value_parser = versions_given::component)]
    with_containerd: Option<String>,

    /// Version of runc
    #[arg(long, value_name = "VERSION", value_parser = versions_given::component)]
    with_runc: Option<String>,

    /// Version of the CNI plugins
    #[arg(long, value_name = "VERSION", value_parser = versions_given::component)]
    with_cni_plugins: Option<String>,

    /// Version of crictl
    #[arg(long, value_name = "VERSION", value_parser = versions_given::component)]
    with_crictl: Option<String>,

    /// Version of CoreDNS
    #[arg(long, value_name = "VERSION", value_parser = versions_given::component)]
    with_coredns: Option<String>,

    /// Keep the current versions of these components, even if the file sets others
    #[arg(long, value_name = "NAME", value_delimiter = ',', value_parser = held_names(), hide_possible_values = true)]
    hold: Vec<String>,
}

impl ComponentOptions {
    /// The versions from the command line.
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

    /// Components that keep their versions.
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
