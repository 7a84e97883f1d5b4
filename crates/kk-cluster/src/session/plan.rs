//! The plans of the commands, and what comes with them.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
};

use kk_config::{Host, KubeVersion};
use kk_engine::{Failure, Finding, Pipeline, Plan};
use tokio_util::sync::CancellationToken;

use super::Session;
use crate::{
    BuildError, Probed,
    capabilities::{
        control_plane,
        kubesphere::KubeSphere,
        nodes::{record_joins, turn},
        os::{identity, other_run},
    },
    capability::Capability,
    certificates::{self, Validity},
    findings::Findings,
    inputs::{Drain, Inputs, Leaving, Scope, api_host},
    offline,
    pipelines::{
        add_nodes, create_cluster, delete_cluster, delete_nodes, renew_certificates, running_cluster, upgrade,
    },
    precheck,
    status::{self, CertificateStatus, Status},
};

/// What `kk create cluster` would do.
pub struct Create {
    /// What the person should know first. With an error among them the plan must not run.
    pub findings: Vec<Finding>,
    /// What is to be done.
    pub plan: Plan,
    /// Things to say: programs whose sum no catalogue knows.
    pub notes: Vec<String>,
    /// Hosts that did not answer and that the plan cannot do without: with one among them it must not run.
    pub needed: BTreeMap<String, Failure>,
    /// What the plan leaves of the certificates of the control planes.
    pub certificates: Certificates,
    /// The nodes that join a cluster that runs.
    pub joining: Vec<Host>,
}

/// How long the certificates of the control planes are valid.
pub struct Certificates {
    kept: Vec<Validity>,
}

impl Certificates {
    /// Until when the certificates of the control planes are valid, once the plan was carried out: those that stay, and the
    /// administrator's, which is as old as those that were made.
    pub fn until(&self, kubeconfig: &Path) -> Option<String> {
        let text = std::fs::read_to_string(kubeconfig).ok()?;
        let admin = certificates::of_kubeconfig(&text)?;
        let first = self.kept.iter().copied().fold(admin, Validity::first);
        Some(format!(
            "valid until {}; kk create cluster renews them from {} on",
            first.end_date(),
            first.due_date()
        ))
    }
}

/// What `kk delete cluster` would do.
pub struct Delete {
    /// What the person should know first.
    pub findings: Vec<Finding>,
    /// What is to be done.
    pub plan: Plan,
}

/// What `kk upgrade` fetches for one version before the first turn.
pub struct Fetch {
    /// What cannot be fetched.
    pub findings: Vec<Finding>,
    /// What is to be done.
    pub plan: Plan,
}

/// The way of a cluster to another version of Kubernetes.
pub struct Hops {
    /// The oldest version of its nodes.
    pub from: KubeVersion,
    /// One minor version after the other; the last is the file's.
    pub hops: Vec<KubeVersion>,
    /// Its hosts in the order of their turns.
    pub turns: Vec<String>,
}

impl Session {
    /// The plan of a create, and what speaks against it.
    ///
    /// # Errors
    /// The plan cannot be built.
    pub async fn plan_create(&self, probed: &Probed) -> Result<Create, BuildError> {
        self.plan(self.create_inputs(probed).await?, Findings::default(), probed).await
    }

    /// The plan for the nodes of the file that are not in the cluster, and what speaks against it.
    ///
    /// # Errors
    /// The plan cannot be built.
    pub async fn plan_add(&self, probed: &Probed) -> Result<Create, BuildError> {
        self.plan_within(self.create_inputs(probed).await?, probed, add_nodes::scope).await
    }

    /// The plan by which certificates with these names are renewed on all hosts of a cluster that runs, and what speaks
    /// against it.
    ///
    /// # Errors
    /// The plan cannot be built.
    pub async fn plan_renew(&self, probed: &Probed, names: BTreeSet<String>) -> Result<Create, BuildError> {
        let inputs = self.inputs_to_renew(probed, names).await?;
        self.plan_within(inputs, probed, renew_certificates::scope).await
    }

    /// What a create does, but for the hosts of a scope, in a cluster that runs as the file says.
    async fn plan_within(
        &self,
        mut inputs: Inputs<'_>,
        probed: &Probed,
        scope: impl FnOnce(&Inputs<'_>) -> Scope,
    ) -> Result<Create, BuildError> {
        let mut found = Findings::default();
        running_cluster::findings(&inputs, &mut found);
        inputs.scope = scope(&inputs);
        let wanted = inputs.wanted_programs();
        inputs.programs.retain(|program, _| wanted.contains(program));
        add_nodes::name_sick_neighbours(&inputs, &mut found);
        self.plan(inputs, found, probed).await
    }

    /// Whether the API of a cluster that runs answers.
    ///
    /// # Errors
    /// As [`Session::plan_create`].
    pub async fn api_answers(&self, probed: &Probed) -> Result<bool, BuildError> {
        Ok(self.create_inputs(probed).await?.state.answered)
    }

    /// The versions through which the cluster goes to the file's.
    ///
    /// # Errors
    /// The version is older than the cluster's, or a version in between is not known.
    pub async fn hops(&self, probed: &Probed) -> Result<Hops, BuildError> {
        let inputs = self.create_inputs(probed).await?;
        let target = self.spec.kubernetes.version;
        let from = upgrade::oldest(&inputs)?.unwrap_or(target);
        let hops = upgrade::hops(from, target, &self.artifacts.kubernetes_versions())?;
        let turns = upgrade::order(&inputs).into_iter().map(|host| host.name.clone()).collect();
        Ok(Hops { from, hops, turns })
    }

    /// What the cluster itself says against an upgrade, in a round of its own: nothing where nothing is to be done.
    ///
    /// # Errors
    /// As [`Session::plan_create`].
    pub async fn upgrade_findings(
        &self,
        probed: &Probed,
        way: &Hops,
        how: &Drain,
        cancel: &CancellationToken,
    ) -> Result<Vec<Finding>, BuildError> {
        let inputs = self.create_inputs(probed).await?;
        let mut found = Findings::default();
        // It is deployed after the last turn, which is too late to refuse it.
        KubeSphere.findings(&inputs, &mut found);
        // Why it cannot be asked is said with the first turn.
        if way.hops == [way.from] || !inputs.state.answered {
            return Ok(found.0);
        }
        let asked = self.probe(precheck::upgrade::specs(&inputs), cancel, |_| {}).await;
        precheck::upgrade::findings(&inputs, &asked, self.spec.kubernetes.version, how, &mut found);
        Ok(found.0)
    }

    /// The plan by which the programs of this version come to the control machine and its images to the nodes, and what cannot.
    ///
    /// # Errors
    /// The plan cannot be built.
    pub async fn plan_fetch(&self, probed: &Probed) -> Result<Fetch, BuildError> {
        let names = self.spec.hosts.iter().map(|host| host.name.clone()).collect();
        let inputs = self.upgrade_inputs(probed, names).await?;
        let mut findings = self.artifacts.unreachable(&inputs.programs).await;
        findings.extend(offline::missing(&inputs));
        Ok(Fetch { findings, plan: Plan::new(upgrade::fetch(&inputs)?, &probed.facts)? })
    }

    /// What is missing of this version, from which an upgrade goes, when a turn that fails is to be put back. Only a bundle can lack
    /// it: else it is downloaded.
    pub async fn missing_to_put_back(&self, probed: &Probed) -> Option<Finding> {
        let names = self.spec.hosts.iter().map(|host| host.name.clone()).collect();
        match self.upgrade_inputs(probed, names).await {
            Ok(inputs) => offline::missing_to_put_back(&inputs),
            Err(error) => Some(offline::cannot_put_back(&error.to_string())),
        }
    }

    /// Whether the turn of a host in an upgrade has begun and not ended.
    pub fn is_in_turn(&self, probed: &Probed, name: &str) -> bool {
        probed.facts.get(name).is_some_and(turn::is_begun)
    }

    /// The plan of the turn of some hosts, with which they get the file's version.
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
        let pipeline = upgrade::turn(&inputs, &names, how)?;
        self.plan_upgrade(inputs, probed, pipeline).await
    }

    /// The plan by which hosts whose turn has failed get this version again, and take pods.
    ///
    /// # Errors
    /// The plan cannot be built.
    pub async fn plan_put_back(
        &self,
        probed: &Probed,
        names: BTreeSet<String>,
    ) -> Result<Create, BuildError> {
        let inputs = self.upgrade_inputs(probed, names).await?;
        let pipeline = upgrade::put_back(&inputs)?;
        self.plan_of(inputs, Findings::default(), probed, pipeline).await
    }

    /// The plan by which a cluster whose control planes all have the file's version gets its add-ons.
    ///
    /// # Errors
    /// The plan cannot be built.
    pub async fn plan_add_ons(&self, probed: &Probed) -> Result<Create, BuildError> {
        let inputs = self.upgrade_inputs(probed, BTreeSet::new()).await?;
        let pipeline = create_cluster::pipeline(&inputs)?;
        self.plan_upgrade(inputs, probed, pipeline).await
    }

    async fn upgrade_inputs<'a>(
        &'a self,
        probed: &'a Probed,
        names: BTreeSet<String>,
    ) -> Result<Inputs<'a>, BuildError> {
        let mut inputs = self.create_inputs(probed).await?;
        inputs.changes = Some(control_plane::VERSION);
        inputs.scope = Scope::Hosts(names);
        let wanted = inputs.wanted_programs();
        inputs.programs.retain(|program, _| wanted.contains(program));
        Ok(inputs)
    }

    async fn plan_upgrade(
        &self,
        inputs: Inputs<'_>,
        probed: &Probed,
        pipeline: Pipeline,
    ) -> Result<Create, BuildError> {
        let mut found = Findings::default();
        upgrade::findings(&inputs, &mut found);
        Box::pin(self.plan_of(inputs, found, probed, pipeline)).await
    }

    async fn plan(&self, inputs: Inputs<'_>, found: Findings, probed: &Probed) -> Result<Create, BuildError> {
        let pipeline = create_cluster::pipeline(&inputs)?;
        Box::pin(self.plan_of(inputs, found, probed, pipeline)).await
    }

    async fn plan_of(
        &self,
        inputs: Inputs<'_>,
        found: Findings,
        probed: &Probed,
        pipeline: Pipeline,
    ) -> Result<Create, BuildError> {
        let mut findings = self.artifacts.unreachable(&inputs.programs).await;
        findings.extend(offline::missing(&inputs));
        findings.extend(found.0);
        findings.extend(precheck::precheck(&create_cluster::capabilities(&self.spec), &inputs));
        let notes = self.artifacts.notes(&inputs.programs);
        let kept = control_plane::renewal::kept(&inputs);
        let plan = Plan::new(pipeline, &probed.facts)?;
        let (needed, certificates) = (precheck::needed(&inputs), Certificates { kept });
        let new = |host: &&Host| record_joins::is_unfinished(&inputs, host);
        let joining = inputs.nodes().into_iter().map(|(host, _)| host).filter(new).cloned().collect();
        Ok(Create { findings, plan, notes, needed, certificates, joining })
    }

    /// What the cluster looks like, and what a create would do about it. Only the hosts are asked, not where downloads come
    /// from.
    ///
    /// # Errors
    /// As [`Session::plan_create`].
    pub async fn status(&self, probed: &Probed) -> Result<Status, BuildError> {
        let inputs = self.create_inputs(probed).await?;
        let findings = precheck::precheck(&create_cluster::capabilities(&self.spec), &inputs);
        let plan = Plan::new(create_cluster::pipeline(&inputs)?, &probed.facts)?;
        Ok(status::of(&inputs, findings, plan.changes()))
    }

    /// Until when the certificates are valid, soonest first.
    ///
    /// # Errors
    /// As [`Session::plan_create`].
    pub async fn certificates(&self, probed: &Probed) -> Result<Vec<CertificateStatus>, BuildError> {
        Ok(status::certificates(&self.create_inputs(probed).await?))
    }

    /// The plan of a delete.
    ///
    /// # Errors
    /// A host holds a cluster that kk did not make, or the plan cannot be built.
    pub fn plan_delete(&self, probed: &Probed) -> Result<Delete, BuildError> {
        let inputs = self.delete_inputs(probed)?;
        identity::refuse_strangers(&inputs)?;
        other_run::refuse(&inputs)?;
        let plan = Plan::new(delete_cluster::pipeline(&inputs), &probed.facts)?;
        Ok(Delete { findings: precheck::left_by_delete(&inputs), plan })
    }

    /// The plan by which hosts leave a cluster that goes on without them. Afterwards the others forget them: see
    /// [`Session::without`].
    ///
    /// # Errors
    /// A name that the file does not have, hosts of another cluster, or the plan cannot be built.
    pub async fn plan_leave(&self, probed: &Probed, leaving: &Leaving) -> Result<Delete, BuildError> {
        let known: Vec<&str> = self.spec.hosts.iter().map(|host| host.name.as_str()).collect();
        if let Some(name) = leaving.names.iter().find(|name| !known.contains(&name.as_str())) {
            return Err(BuildError::config(
                format!("the file has no host {name}"),
                format!("name one of its hosts: {}", known.join(", ")),
            ));
        }
        let mut inputs = self.create_inputs(probed).await?;
        let stay = self.spec.control_planes().into_iter().filter(|host| !leaving.has(host));
        let mut found = Findings::default();
        delete_nodes::findings(&inputs, leaving, &mut found);
        if stay.clone().next().is_some() {
            (inputs.api_host, inputs.state) = api_host(stay, &inputs.presence);
            running_cluster::findings(&inputs, &mut found);
        }
        identity::refuse_strangers(&inputs)?;
        // Nothing is done on a host that is gone for good, also when it answers.
        inputs.scope = Scope::Hosts(if leaving.gone { BTreeSet::new() } else { leaving.names.clone() });
        inputs.scope = delete_cluster::scope(&inputs);
        let plan = Plan::new(delete_nodes::pipeline(&inputs, leaving), &probed.facts)?;
        Ok(Delete { findings: found.0, plan })
    }

    /// The plan by which the hosts of the file forget those that have left: nothing joins. What speaks against it is what
    /// speaks against adding nodes: a control plane that is silent now must not be taken for one that was never made.
    ///
    /// # Errors
    /// The plan cannot be built.
    pub async fn plan_forget(&self, probed: &Probed) -> Result<Create, BuildError> {
        let mut inputs = self.create_inputs(probed).await?;
        // Their members have left, too.
        inputs.changes = Some(control_plane::ETCD_MEMBERS);
        self.plan_within(inputs, probed, |_| Scope::Hosts(BTreeSet::new())).await
    }
}
