//! Trait of capabilities. A capability is everything that kk knows about one subject, as one value.
//!
//! Pipelines are lists of capabilities. Probe, precheck, downloads, pulls, verification and delete are loops over them, so a new
//! capability is a directory and a line in a list.

use kk_artifact::Component;
use kk_config::{Host, Spec};
use kk_engine::{ProbeSpec, Task};

use crate::{
    base::{
        error::BuildError,
        findings::{Findings, Setting},
        requirements::{ImageStage, Manifest, Port, ProgramStage, Ready, Recorded},
        supply::PublishedFile,
    },
    model::{cluster::Cluster, inputs::Inputs, options::Leaving},
};

/// When the tasks of a capability may run in an upgrade. In a create the list of capabilities is the order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// On hosts, in the turn of each.
    Hosts,
    /// In the cluster, through its API. No add-on may be newer than an API server, so this stage follows all control planes
    /// (Kubernetes, "Version Skew Policy").
    AddOns,
    /// At the end, after all changes.
    Verification,
}

/// One subject: etcd, the runtime, a network plugin. Every method has a default, so a capability implements only the methods it
/// needs.
pub(crate) trait Capability: Sync {
    /// The name of its directory and of its module in plan and log.
    fn name(&self) -> &'static str;

    /// When its tasks may run in an upgrade.
    fn stage(&self) -> Stage;

    /// The reason if a setting makes this run skip the capability, that is, its requirements, findings and tasks
    /// ([`taking_part`]). Its questions are asked even then, because the state of hosts may decide, and a delete removes what an
    /// earlier run created.
    fn skipped(&self, _cluster: &Cluster) -> Option<&'static str> {
        None
    }

    /// Binaries that it needs on a host, and the stage by which it needs them.
    fn programs(&self, _spec: &Spec, _host: &Host) -> Vec<(ProgramStage, Component)> {
        Vec::new()
    }

    /// Images that it needs on a host, and the stage by which it needs them.
    fn images(&self, _cluster: &Cluster, _host: &Host) -> Vec<(ImageStage, String)> {
        Vec::new()
    }

    /// Directories that it needs on every node. They are recorded, so that a delete removes those that kk created.
    fn directories(&self, _spec: &Spec) -> Vec<String> {
        Vec::new()
    }

    /// Network interfaces that its components create on nodes, with `*` for any end of a name: `NetworkManager` ignores them.
    fn interfaces(&self) -> &'static [&'static str] {
        &[]
    }

    /// Ports on which its components listen on a host.
    fn ports(&self, _spec: &Spec, _host: &Host) -> Vec<Port> {
        Vec::new()
    }

    /// Requests the facts for its checks and for its choice of tasks, in addition to the facts that its actions request.
    fn asks(&self, _inputs: &Inputs, _host: &Host, _probe: &mut ProbeSpec) {}

    /// Problems, warnings and adaptations, known before the first change.
    fn findings(&self, _inputs: &Inputs, _found: &mut Findings) {}

    /// Settings that a running cluster cannot change, each with the current value on a host.
    fn immutable(&self, _inputs: &Inputs) -> Vec<Setting> {
        Vec::new()
    }

    /// The published manifest that it adapts to the cluster. It is fetched before the first change.
    fn published(&self, _spec: &Spec) -> Option<PublishedFile> {
        None
    }

    /// The manifests that are applied through the API after the nodes have joined.
    fn manifests(&self, _cluster: &Cluster) -> Result<Vec<Manifest>, BuildError> {
        Ok(Vec::new())
    }

    /// Conditions for a complete cluster.
    fn ready(&self, _cluster: &Cluster) -> Vec<Ready> {
        Vec::new()
    }

    /// Tasks that install it, and change it if the file has changed.
    fn install(&self, _inputs: &Inputs) -> Result<Vec<Task>, BuildError> {
        Ok(Vec::new())
    }

    /// Tasks that follow the tasks of all earlier capabilities. `changes`: one of these tasks changes something, so the result of
    /// the probe may be outdated.
    fn verify(&self, _inputs: &Inputs, _changes: bool) -> Vec<Task> {
        Vec::new()
    }

    /// Tasks by which hosts leave the cluster, before anything is removed from them.
    fn leave(&self, _inputs: &Inputs, _leaving: &Leaving) -> Vec<Task> {
        Vec::new()
    }

    /// Tasks that remove what the record of a host cannot name: processes, data, and files that components wrote.
    fn remove(&self, _inputs: &Inputs) -> Vec<Task> {
        Vec::new()
    }

    /// Paths and units of a host's record that belong to the runtime, which stays unless its removal is requested.
    fn stays(&self, _cluster: &Cluster) -> Vec<Recorded> {
        Vec::new()
    }
}

/// The capabilities of one cluster, in the order of a pipeline.
pub(crate) type Capabilities = Vec<&'static dyn Capability>;

/// The capabilities that no setting skips.
pub(crate) fn taking_part(all: &Capabilities, cluster: &Cluster) -> Capabilities {
    all.iter().copied().filter(|capability| capability.skipped(cluster).is_none()).collect()
}
