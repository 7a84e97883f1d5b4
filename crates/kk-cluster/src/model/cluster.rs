//! A cluster as the file describes it and as its hosts report it: everything that is known before the requirements.

use std::collections::{BTreeMap, BTreeSet};

use kk_artifact::{Component, Versions};
use kk_config::{Arch, Host, Role, Spec};
use kk_engine::{Facts, Failure};

use crate::{
    base::{
        cluster_state::{ClusterState, INITIALISED},
        host_layout::{CLUSTER_CA, KUBELET_CONF},
        images::Images,
        questions::{BEGAN, CGROUP_DRIVER, CREDENTIALS, PODS_KNOWN},
        supply::{Installer, Published},
        templates::Templates,
    },
    model::{command::Command, endpoint::Endpoint, options::Options},
};

/// Whether a host answered, and with what result.
#[derive(Clone, Copy)]
pub(crate) enum Presence<'a> {
    /// It answered the probe.
    Probed(&'a Facts),
    /// It did not answer, for this reason.
    Absent(&'a Failure),
}

/// The hosts that a command may change.
pub(crate) enum Scope {
    /// All hosts of the file.
    All,
    /// Only these hosts.
    Hosts(BTreeSet<String>),
}

impl Scope {
    pub(crate) fn contains(&self, host: &Host) -> bool {
        match self {
            Self::All => true,
            Self::Hosts(hosts) => hosts.contains(&host.name),
        }
    }
}

/// Properties of a kind of container runtime that code outside of its directory needs.
#[derive(Clone, Copy)]
pub(crate) struct Runtime {
    /// The address of its CRI socket.
    pub cri_socket: &'static str,
    /// Its systemd unit, without `.service`.
    pub unit: &'static str,
    /// The components whose binaries are replaced while the unit is restarted.
    pub components: &'static [Component],
    /// Shell functions for operations that CRI does not have: `runtime_runs`, `runtime_import`, `runtime_tag`, `runtime_digest`
    /// and `runtime_run`.
    pub operations: &'static str,
}

/// The source of the requirements of capabilities. A value is always complete. [`Inputs`](super::inputs::Inputs) adds the
/// requirements, and data that depends on them.
pub(crate) struct Cluster<'a> {
    /// The contents of the Cluster file.
    pub spec: &'a Spec,
    /// Every host of the file by name. Tasks use [`Cluster::hosts`] and similar functions; [`Cluster::facts`] is for a single
    /// host.
    pub presence: BTreeMap<&'a str, Presence<'a>>,
    /// The hosts that this command may change.
    pub scope: Scope,
    /// The control plane whose API is used.
    pub api_host: &'a Host,
    /// The state of the cluster, as `api_host` reports it.
    pub state: ClusterState,
    /// Versions of all components.
    pub versions: Versions,
    /// Images of these versions.
    pub images: Images,
    /// Published manifests that capabilities adapt.
    pub published: Published,
    /// The container runtime.
    pub runtime: Runtime,
    /// Templates of the files for hosts.
    pub templates: Templates,
    /// The source of ks-installer.
    pub installer: Installer,
    /// Choices of this run.
    pub options: Options,
    /// The command that the user requested.
    pub command: Command,
}

impl<'a> Cluster<'a> {
    /// The facts of a host. `None` if it did not answer.
    pub(crate) fn facts(&self, host: &Host) -> Option<&'a Facts> {
        match self.presence.get(host.name.as_str())? {
            Presence::Probed(facts) => Some(facts),
            Presence::Absent(_) => None,
        }
    }

    /// Whether every host of the file answered.
    pub(crate) fn all_answered(&self) -> bool {
        self.presence.values().all(|presence| matches!(presence, Presence::Probed(_)))
    }

    /// The hosts among these that answered and that this command may change.
    fn present(&self, hosts: impl IntoIterator<Item = &'a Host>) -> Vec<(&'a Host, &'a Facts)> {
        let with_facts = |host: &'a Host| Some((host, self.facts(host)?));
        hosts.into_iter().filter(|host| self.scope.contains(host)).filter_map(with_facts).collect()
    }

    /// All hosts that answered, including those that this command does not change.
    pub(crate) fn answered(&self) -> Vec<(&'a Host, &'a Facts)> {
        self.spec.hosts.iter().filter_map(|host| Some((host, self.facts(host)?))).collect()
    }

    /// The hosts that this command does not change.
    pub(crate) fn outside(&self) -> impl Iterator<Item = &'a Host> {
        self.spec.hosts.iter().filter(|host| !self.scope.contains(host))
    }

    /// All hosts that take part.
    pub(crate) fn hosts(&self) -> Vec<(&'a Host, &'a Facts)> {
        self.present(&self.spec.hosts)
    }

    /// The nodes that take part.
    pub(crate) fn nodes(&self) -> Vec<(&'a Host, &'a Facts)> {
        self.present(self.spec.nodes())
    }

    /// The control planes that take part.
    pub(crate) fn control_planes(&self) -> Vec<(&'a Host, &'a Facts)> {
        self.present(self.spec.control_planes())
    }

    /// The etcd members that take part.
    pub(crate) fn etcd_hosts(&self) -> Vec<(&'a Host, &'a Facts)> {
        self.present(self.spec.etcd_hosts())
    }

    /// The architecture of a host.
    pub(crate) fn arch(&self, host: &Host) -> Arch {
        let probed = || self.facts(host).and_then(|facts| Arch::from_name(&facts.arch));
        host.arch.or_else(probed).unwrap_or(Arch::Amd64)
    }

    /// Whether any node that answered meets the condition.
    pub(crate) fn any_node(&self, is: impl Fn(&Facts) -> bool) -> bool {
        self.spec.nodes().iter().filter_map(|host| self.facts(host)).any(is)
    }

    /// The API behind its name.
    pub(crate) fn endpoint(&self) -> Endpoint<'a> {
        Endpoint::of(self)
    }

    /// Whether systemd manages the cgroups of pods. The kubelet's configuration is the same on all nodes, so a single host
    /// without that ability decides for the cluster. A running cluster keeps its driver.
    pub(crate) fn systemd_cgroups(&self) -> bool {
        match self.running_cgroup_driver() {
            Some(driver) => driver == "systemd",
            None => !self.any_node(|facts| !facts.systemd_cgroups),
        }
    }

    /// The cgroup driver of a running cluster: with another driver its kubelets could not restart pods.
    pub(crate) fn running_cgroup_driver(&self) -> Option<String> {
        if !self.has_joined(self.api_host) {
            return None;
        }
        let driver = self.facts(self.api_host)?.answer(&CGROUP_DRIVER).answered()?;
        ["systemd", "cgroupfs"].contains(&driver.as_str()).then_some(driver)
    }

    /// Whether `kubeadm init` finished on a control plane.
    pub(crate) fn is_initialised(&self) -> bool {
        self.state.is_initialised()
    }

    /// Whether a node has joined: it has credentials of this cluster that its kubelet can use. If the node was killed or deleted
    /// since, the API may not list it; its kubelet registers it again.
    pub(crate) fn has_joined(&self, host: &Host) -> bool {
        let ca = |host: &Host| self.facts(host)?.files.get(CLUSTER_CA).map(|file| &file.sha256);
        // A control plane does not join again because of invalid credentials. A missing answer is not a "no".
        let can_work = |facts: &Facts| {
            host.has_role(&Role::ControlPlane) || facts.answer(&CREDENTIALS).answered() != Some(false)
        };
        // The kubeconfig of a control plane's kubelet may be lost. It is renewed if the host has the CA.
        let joined = |facts: &Facts| {
            facts.files.contains_key(KUBELET_CONF)
                || host.has_role(&Role::ControlPlane) && facts.answer(&INITIALISED).answered() == Some(true)
        };
        self.facts(host).is_some_and(|facts| joined(facts) && can_work(facts))
            && ca(host).is_some()
            && ca(host) == ca(self.api_host)
    }

    /// Whether the API's status of a node or its pods is older than its kubelet: the host has just been without power.
    pub(crate) fn is_outdated(&self, host: &Host) -> bool {
        let Some(facts) = self.facts(host) else { return false };
        let began = facts.answer(&BEGAN).answered().unwrap_or_default();
        let reported =
            self.state.nodes.get(&host.name).map(|node| node.reported.as_str()).unwrap_or_default();
        let node = !began.is_empty() && !reported.is_empty() && *reported < *began;
        node || facts.answer(&PODS_KNOWN).answered() == Some(false)
    }

    /// Whether the node is Ready, by a report since its kubelet started.
    pub(crate) fn is_ready(&self, host: &Host) -> bool {
        self.state.nodes.get(&host.name).is_some_and(|node| node.ready) && !self.is_outdated(host)
    }

    /// Whether the API lists the node.
    pub(crate) fn is_registered(&self, host: &Host) -> bool {
        self.state.nodes.contains_key(&host.name)
    }

    /// The nodes that have to join in this run, without the control plane that is initialised.
    pub(crate) fn joining(&self) -> Vec<&'a Host> {
        let first = &self.api_host.name;
        let nodes = self.nodes().into_iter().map(|(host, _)| host);
        nodes.filter(|host| host.name != *first && !self.has_joined(host)).collect()
    }
}

/// The control plane whose API is used, and its state: the first that finished `kubeadm init` and answers, else the first that
/// finished it, else the first in the file.
pub(crate) fn api_host<'a>(
    control_planes: impl IntoIterator<Item = &'a Host>,
    presence: &BTreeMap<&'a str, Presence<'a>>,
) -> (&'a Host, ClusterState) {
    let state = |host: &'a Host| match presence.get(host.name.as_str()) {
        Some(Presence::Probed(facts)) => ClusterState::of(facts),
        _ => ClusterState::default(),
    };
    let mut states: Vec<_> = control_planes.into_iter().map(|host| (host, state(host))).collect();
    let answers = states.iter().position(|(_, state)| state.answered && state.is_initialised());
    let ran = states.iter().position(|(_, state)| state.is_initialised());
    states.swap_remove(answers.or(ran).unwrap_or(0))
}
