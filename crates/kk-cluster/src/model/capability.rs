//! A capability of a cluster: everything that kk knows about one subject, as one value.
//!
//! Pipelines are lists of capabilities. Probe, precheck, downloads, pulls, verification and delete are loops over them,
//! so a new capability is a directory and a line in a list.

use kk_artifact::Component;
use kk_config::{Host, Spec};
use kk_engine::{ProbeSpec, Task};

use crate::{
    base::{
        error::BuildError,
        findings::{Findings, Setting},
        requirements::{ImageStage, Manifest, Port, ProgramStage, Ready, Recorded},
    },
    model::{cluster::Cluster, inputs::Inputs, options::Leaving},
};

/// When the tasks of a capability may run in an upgrade. In a create the list of capabilities is the order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// On hosts, in the turn of each.
    Hosts,
    /// In the cluster, through its API. No part of it may be newer than an API server, so it follows all control planes (Kubernetes,
    /// "Version Skew Policy").
    AddOns,
    /// At the end, when nothing is changed any more.
    Verification,
}

/// One subject: etcd, the runtime, a network plugin. Every method has a default, so a capability says only what it has.
pub(crate) trait Capability: Sync {
    /// The name of its directory and of its module in plan and log.
    fn name(&self) -> &'static str;

    /// When its tasks may run in an upgrade.
    fn stage(&self) -> Stage;

    /// Why this run leaves it out, when a setting does so: all that it needs, finds and does ([`taking_part`]). It asks all the
    /// same, because what is there may decide, and a delete removes what an earlier run has made.
    fn skipped(&self, _cluster: &Cluster) -> Option<&'static str> {
        None
    }

    /// Programs that it needs on a host, and by when.
    fn programs(&self, _spec: &Spec, _host: &Host) -> Vec<(ProgramStage, Component)> {
        Vec::new()
    }

    /// Images that it needs on a host, and by when.
    fn images(&self, _cluster: &Cluster, _host: &Host) -> Vec<(ImageStage, String)> {
        Vec::new()
    }

    /// Directories that it needs on every node. They are recorded, so that a delete removes those that it made.
    fn directories(&self, _spec: &Spec) -> Vec<String> {
        Vec::new()
    }

    /// Network interfaces that its programs make on nodes, `*` for any end of a name: `NetworkManager` leaves them alone.
    fn interfaces(&self) -> &'static [&'static str] {
        &[]
    }

    /// Ports on which its programs listen on a host.
    fn ports(&self, _spec: &Spec, _host: &Host) -> Vec<Port> {
        Vec::new()
    }

    /// What its checks and its choice of tasks read from a host's facts, beyond what its actions ask for themselves.
    fn asks(&self, _inputs: &Inputs, _host: &Host, _probe: &mut ProbeSpec) {}

    /// Problems, warnings and adaptations, known before the first change.
    fn findings(&self, _inputs: &Inputs, _found: &mut Findings) {}

    /// Settings that a running cluster cannot change, each with the value that a host has now.
    fn immutable(&self, _inputs: &Inputs) -> Vec<Setting> {
        Vec::new()
    }

    /// What is applied through the API once the nodes are there.
    fn manifests(&self, _cluster: &Cluster) -> Result<Vec<Manifest>, BuildError> {
        Ok(Vec::new())
    }

    /// What must be true before the cluster is complete.
    fn ready(&self, _cluster: &Cluster) -> Vec<Ready> {
        Vec::new()
    }

    /// Tasks that bring it up, and change it where the file has changed.
    fn install(&self, _inputs: &Inputs) -> Result<Vec<Task>, BuildError> {
        Ok(Vec::new())
    }

    /// Tasks after those of all capabilities before it. `changes`: one of these has something to do, so what the probe saw
    /// may no longer be true.
    fn verify(&self, _inputs: &Inputs, _changes: bool) -> Vec<Task> {
        Vec::new()
    }

    /// Tasks by which the cluster lets hosts go, before anything is removed from them.
    fn leave(&self, _inputs: &Inputs, _leaving: &Leaving) -> Vec<Task> {
        Vec::new()
    }

    /// Tasks that remove what the record of a host cannot name: processes, data, what programs wrote.
    fn remove(&self, _inputs: &Inputs) -> Vec<Task> {
        Vec::new()
    }

    /// Paths and units of a host's record that belong to the runtime, which stays unless it is to be removed, too.
    fn stays(&self, _cluster: &Cluster) -> Vec<Recorded> {
        Vec::new()
    }
}

/// The capabilities of one cluster, in the order of a pipeline.
pub(crate) type Capabilities = Vec<&'static dyn Capability>;

/// Those that no setting leaves out.
pub(crate) fn taking_part(all: &Capabilities, cluster: &Cluster) -> Capabilities {
    all.iter().copied().filter(|capability| capability.skipped(cluster).is_none()).collect()
}
