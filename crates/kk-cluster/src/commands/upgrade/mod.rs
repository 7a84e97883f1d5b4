//! The plans of an upgrade: its versions, its fetches and its turns, and the sessions for the versions before and after a turn.

use std::collections::BTreeSet;

use kk_artifact::Component;
use kk_config::{Components, KubeVersion};
use kk_engine::{Finding, Pipeline, Plan};
use tokio_util::sync::CancellationToken;

pub(crate) mod pipeline;
pub(crate) mod precheck;

use super::session::{Create, Session, probe::presence};
use crate::{
    base::{error::BuildError, findings::Findings, probed::Probed},
    capabilities::{
        kubesphere::KubeSphere,
        nodes::turn,
        versions::{is_older_minor, of_any_version, of_version, oldest},
    },
    commands::create_cluster,
    model::{
        capability::Capability,
        cluster::{Scope, api_host},
        command::Command,
        inputs::Inputs,
        offline,
        options::Drain,
    },
};

/// The downloads of `kk upgrade` for one version, before the first turn.
pub struct Fetch {
    /// Files that cannot be fetched.
    pub findings: Vec<Finding>,
    /// The work.
    pub plan: Plan,
}

/// The steps of a cluster to another version of Kubernetes.
pub struct Hops {
    /// The oldest version of its nodes.
    pub from: KubeVersion,
    /// One minor version after the other; the last is the file's.
    pub hops: Vec<KubeVersion>,
    /// Its hosts in the order of their turns.
    pub turns: Vec<String>,
    /// Other components that get another version, as `etcd 3.6.12 -> 3.6.14`.
    pub components: Vec<String>,
}

impl Session {
    /// The versions through which the cluster is upgraded to the file's version.
    ///
    /// # Errors
    /// One of these versions is older than the cluster's or a control plane's, or a version in between is not known.
    pub async fn hops(&self, probed: &Probed) -> Result<Hops, BuildError> {
        let inputs = self.create_inputs(probed).await?;
        let target = self.spec.kubernetes.version;
        let from = pipeline::oldest(&inputs)?.unwrap_or(target);
        let hops = pipeline::hops(from, target, &self.artifacts.kubernetes_versions())?;
        pipeline::refuse_older(&inputs, &hops)?;
        let turns = pipeline::order(&inputs).into_iter().map(|host| host.name.clone()).collect();
        Ok(Hops { from, hops, turns, components: pipeline::other_components(&inputs) })
    }

    /// The same cluster with another version of Kubernetes.
    ///
    /// # Errors
    /// As [`Session::open`].
    pub fn at_version(&self, version: KubeVersion) -> Result<Self, BuildError> {
        let mut spec = self.spec.clone();
        spec.kubernetes.version = version;
        self.with_spec(spec)
    }

    /// The same cluster, in which these components keep their current versions, regardless of the file.
    ///
    /// # Errors
    /// The cluster does not report its versions.
    pub fn hold(&self, probed: &Probed, held: &[Component]) -> Result<Self, BuildError> {
        let presence = presence(probed);
        let (api_host, state) = api_host(self.spec.control_planes(), &presence);
        let recorded = of_any_version(&presence, api_host, &self.spec).unwrap_or_default();
        let mut spec = self.spec.clone();
        for component in held {
            let pin = spec.components.iter_mut().find(|(key, _)| *key == component.version_key());
            match (recorded.of_component(*component), pin) {
                (Some(there), Some((_, pin))) => *pin = Some(there.to_owned()),
                // The first turn reports that there is no cluster.
                _ if !state.is_initialised() => {}
                _ => {
                    return Err(BuildError::config(
                        format!("{component} cannot be held: no control plane reports its current version"),
                        "set the version in spec.components instead",
                    ));
                }
            }
        }
        self.with_spec(spec)
    }

    /// The cluster with its current versions, to which hosts are rolled back if their turn to `next` fails. `etcd` contains the
    /// versions that its members run. Only etcd is not downgraded to an older minor version, because its data cannot be.
    ///
    /// # Errors
    /// As [`Session::open`].
    pub fn to_put_back(
        &self,
        probed: &Probed,
        etcd: &[String],
        from: KubeVersion,
        next: &Self,
    ) -> Result<Self, BuildError> {
        let mut before = self.at_version(from)?;
        let presence = presence(probed);
        let (api_host, _) = api_host(self.spec.control_planes(), &presence);
        let mut spec = before.spec.clone();
        let recorded = of_version(&presence, api_host, &spec);
        if let Some(recorded) = &recorded {
            // The pins of the file and of the command line do not count: they are the target of the upgrade.
            spec.components = recorded.behind(&Components::default());
            before = before.with_spec(spec.clone())?;
        }
        // A note may have been written after the turn of its host, and a member may be in the middle of its own turn.
        let notes = [recorded, of_any_version(&presence, api_host, &spec)];
        let versions = notes.iter().flatten().filter_map(|note| note.of_component(Component::Etcd));
        let there = oldest(versions.chain(etcd.iter().map(String::as_str)));
        let there = there.map_or_else(|| before.artifacts.versions.of(Component::Etcd), str::to_owned);
        let wanted = next.versions(&presence, api_host)?.of(Component::Etcd);
        let back = if is_older_minor(&there, &wanted) { wanted } else { there };
        if before.artifacts.versions.of(Component::Etcd) != back {
            spec.components.etcd = Some(back);
            before = before.with_spec(spec)?;
        }
        Ok(before)
    }

    /// Blockers of an upgrade that only the cluster itself knows, from an additional round. Without work for the upgrade, there
    /// is no such round. `drained` contains the nodes that the turns of the first version drain.
    ///
    /// # Errors
    /// As [`Session::plan_create`].
    pub async fn upgrade_findings(
        &self,
        probed: &Probed,
        way: &Hops,
        drained: BTreeSet<String>,
        how: &Drain,
        cancel: &CancellationToken,
    ) -> Result<Vec<Finding>, BuildError> {
        let inputs = self.create_inputs(probed).await?;
        let mut found = Findings::default();
        // KubeSphere is deployed after the last turn, which is too late to refuse it.
        KubeSphere.findings(&inputs, &mut found);
        // If the API cannot be queried, the first turn reports why.
        let drained: BTreeSet<String> = match way.hops.len() {
            0 | 1 => drained,
            // A later version changes the nodes that the first version does not change.
            _ => {
                let drains =
                    inputs.nodes().into_iter().filter(|(host, facts)| turn::drains(&inputs, host, facts));
                drains.map(|(host, _)| host.name.clone()).collect()
            }
        };
        let is_nothing = way.hops == [way.from] && drained.is_empty();
        if is_nothing || !inputs.state.answered {
            return Ok(found.0);
        }
        let asked = self.probe(precheck::specs(&inputs), cancel, |_| {}).await;
        let target = self.spec.kubernetes.version;
        precheck::findings(&inputs, &asked, target, &drained, how, &mut found);
        Ok(found.0)
    }

    /// The plan that fetches the binaries of this version to the control machine and its images to the nodes, and reports missing
    /// ones.
    ///
    /// # Errors
    /// The plan cannot be built.
    pub async fn plan_fetch(&self, probed: &Probed) -> Result<Fetch, BuildError> {
        let names = self.spec.hosts.iter().map(|host| host.name.clone()).collect();
        let inputs = self.upgrade_inputs(probed, names).await?;
        let mut findings = self.artifacts.unreachable(&inputs.programs).await;
        findings.extend(offline::missing(&inputs));
        Ok(Fetch { findings, plan: Plan::new(pipeline::fetch(&inputs)?, &probed.facts)? })
    }

    /// A warning about files of this version that a rollback would need and that are missing; this version is the one before the
    /// upgrade. Only a bundle can lack them: without a bundle, they are downloaded.
    pub async fn missing_to_put_back(&self, probed: &Probed) -> Option<Finding> {
        let names = self.spec.hosts.iter().map(|host| host.name.clone()).collect();
        match self.upgrade_inputs(probed, names).await {
            Ok(inputs) => offline::missing_to_put_back(&inputs),
            Err(error) => Some(offline::cannot_put_back(&error.to_string())),
        }
    }

    /// Whether the turn of a host in an upgrade has begun and is not finished.
    pub fn is_in_turn(&self, probed: &Probed, name: &str) -> bool {
        probed.facts.get(name).is_some_and(turn::is_begun)
    }

    /// The nodes that have the version of this session already before their turn: if that turn fails, they keep it.
    ///
    /// # Errors
    /// The inputs cannot be built from the answers.
    pub async fn with_version(&self, probed: &Probed) -> Result<BTreeSet<String>, BuildError> {
        let inputs = self.create_inputs(probed).await?;
        let version = self.spec.kubernetes.version.to_string();
        let nodes = inputs
            .state
            .nodes
            .iter()
            .filter(|(name, node)| node.version == version && !self.is_in_turn(probed, name));
        Ok(nodes.map(|(name, _)| name.clone()).collect())
    }

    /// The plan of the turn of these hosts, in which they get the file's version.
    ///
    /// # Errors
    /// The plan cannot be built.
    pub async fn plan_turn(
        &self,
        probed: &Probed,
        names: BTreeSet<String>,
        how: &Drain,
    ) -> Result<Create, BuildError> {
        let inputs = self.upgrade_inputs(probed, names.clone()).await?;
        let turn = pipeline::turn(&inputs, &names, how)?;
        let drained = turn.drained;
        Ok(Create { drained, ..self.plan_upgrade(inputs, probed, turn.pipeline).await? })
    }

    /// The plan that rolls hosts whose turn failed back to this version, and lets them accept pods again.
    ///
    /// # Errors
    /// The plan cannot be built.
    pub async fn plan_put_back(
        &self,
        probed: &Probed,
        names: BTreeSet<String>,
    ) -> Result<Create, BuildError> {
        let inputs = self.inputs_within(Command::RollBack, probed, names).await?;
        let pipeline = pipeline::put_back(&inputs)?;
        self.plan_of(inputs, Findings::default(), probed, pipeline).await
    }

    /// The plan that installs the add-ons in a cluster whose control planes all have the file's version.
    ///
    /// # Errors
    /// The plan cannot be built.
    pub async fn plan_add_ons(&self, probed: &Probed) -> Result<Create, BuildError> {
        let inputs = self.upgrade_inputs(probed, BTreeSet::new()).await?;
        let pipeline = create_cluster::pipeline(&inputs)?;
        self.plan_upgrade(inputs, probed, pipeline).await
    }

    pub(crate) async fn upgrade_inputs<'a>(
        &'a self,
        probed: &'a Probed,
        names: BTreeSet<String>,
    ) -> Result<Inputs<'a>, BuildError> {
        self.inputs_within(Command::Upgrade, probed, names).await
    }

    async fn inputs_within<'a>(
        &'a self,
        command: Command,
        probed: &'a Probed,
        names: BTreeSet<String>,
    ) -> Result<Inputs<'a>, BuildError> {
        Ok(self.inputs_for(command, probed).await?.within(Scope::Hosts(names)))
    }

    async fn plan_upgrade(
        &self,
        inputs: Inputs<'_>,
        probed: &Probed,
        pipeline: Pipeline,
    ) -> Result<Create, BuildError> {
        let mut found = Findings::default();
        pipeline::findings(&inputs, &mut found);
        Box::pin(self.plan_of(inputs, found, probed, pipeline)).await
    }
}
