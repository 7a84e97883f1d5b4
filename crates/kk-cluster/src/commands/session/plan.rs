//! The plans of the commands, and what comes with them.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
};

use kk_config::Host;
use kk_engine::{Failure, Finding, Pipeline, Plan, Severity};

use super::Session;
use crate::{
    base::{
        certificates::{self, Validity},
        error::BuildError,
        findings::Findings,
        probed::Probed,
    },
    capabilities::{
        ca_rotation, control_plane, etcd_restore,
        kubesphere::remove_kubesphere,
        nodes::record_joins,
        os::ownership::{identity, other_run},
    },
    commands::{
        pipelines::{
            add_nodes, create_cluster, delete_cluster, delete_nodes, renew_certificates, running_cluster,
        },
        precheck,
        status::{self, CertificateStatus, Status},
    },
    model::{
        cluster::{Cluster, Scope, api_host},
        command::Command,
        inputs::Inputs,
        offline,
        options::Leaving,
    },
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
    /// Warnings about the addons of which something cannot be had, and which the plan leaves as they are.
    pub left_out: Vec<Finding>,
    /// The nodes whose pods are moved first in the turn of an upgrade, by name.
    pub drained: BTreeSet<String>,
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

impl Session {
    /// The plan of a create, and what speaks against it.
    ///
    /// # Errors
    /// The plan cannot be built.
    pub async fn plan_create(&self, probed: &Probed) -> Result<Create, BuildError> {
        let mut inputs = self.create_inputs(probed).await?;
        let found = Findings(self.fetch_addons(&mut inputs).await);
        self.plan(inputs, found, probed).await
    }

    /// What a create still finds to do at the end of another command. The cluster was changed by then: the rest is done also when an
    /// addon cannot be had.
    ///
    /// # Errors
    /// The plan cannot be built.
    pub async fn plan_rest(&self, probed: &Probed) -> Result<Create, BuildError> {
        let mut inputs = self.create_inputs(probed).await?;
        let left_out = self.fetch_or_leave_addons(&mut inputs).await;
        let rest = self.plan(inputs, Findings::default(), probed).await?;
        Ok(Create { left_out, ..rest })
    }

    /// The plan for the nodes of the file that are not in the cluster, and what speaks against it.
    ///
    /// # Errors
    /// The plan cannot be built.
    pub async fn plan_add(&self, probed: &Probed) -> Result<Create, BuildError> {
        let (inputs, mut found) = (self.inputs_for(Command::AddNodes, probed).await?, Findings::default());
        add_nodes::settings_of_others(&inputs, &mut found);
        self.plan_within(inputs, found, probed, add_nodes::scope).await
    }

    /// The plan by which certificates with these names are renewed on all hosts of a cluster that runs, and what speaks
    /// against it.
    ///
    /// # Errors
    /// The plan cannot be built.
    pub async fn plan_renew(&self, probed: &Probed, names: BTreeSet<String>) -> Result<Create, BuildError> {
        let inputs = self.inputs_for(Command::Renew(names), probed).await?;
        self.plan_within(inputs, Findings::default(), probed, renew_certificates::scope).await
    }

    /// What a create does, but for the hosts of a scope, in a cluster that runs as the file says.
    async fn plan_within(
        &self,
        inputs: Inputs<'_>,
        mut found: Findings,
        probed: &Probed,
        scope: impl FnOnce(&Cluster<'_>) -> Scope,
    ) -> Result<Create, BuildError> {
        running_cluster::findings(&inputs, &mut found);
        let scope = scope(&inputs);
        let inputs = inputs.within(scope);
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

    async fn plan(&self, inputs: Inputs<'_>, found: Findings, probed: &Probed) -> Result<Create, BuildError> {
        let pipeline = create_cluster::pipeline(&inputs)?;
        Box::pin(self.plan_of(inputs, found, probed, pipeline)).await
    }

    pub(super) async fn plan_of(
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
        let (left_out, drained) = Default::default();
        Ok(Create { findings, plan, notes, needed, certificates, joining, left_out, drained })
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
        let session = self.as_installed(probed, |_| true)?;
        let inputs = session.delete_inputs(probed)?;
        identity::refuse_strangers(&inputs)?;
        other_run::refuse(&inputs)?;
        let plan = Plan::new(delete_cluster::pipeline(&inputs), &probed.facts)?;
        let mut found = Findings(precheck::left_by_delete(&inputs));
        remove_kubesphere::findings(&inputs, &mut found);
        Ok(Delete { findings: found.0, plan })
    }

    /// Whether the file has all hosts that are to leave.
    ///
    /// # Errors
    /// It does not have one of them.
    pub fn knows(&self, leaving: &Leaving) -> Result<(), BuildError> {
        let known: Vec<&str> = self.spec.hosts.iter().map(|host| host.name.as_str()).collect();
        match leaving.names.iter().find(|name| !known.contains(&name.as_str())) {
            None => Ok(()),
            Some(name) => Err(BuildError::config(
                format!("the file has no host {name}"),
                format!("name one of its hosts: {}", known.join(", ")),
            )),
        }
    }

    /// The plan by which hosts leave a cluster that goes on without them. Afterwards the others forget them: see
    /// [`Session::without`].
    ///
    /// # Errors
    /// A name that the file does not have, hosts of another cluster or on which another run works, or the plan cannot be built.
    pub async fn plan_leave(&self, probed: &Probed, leaving: &Leaving) -> Result<Delete, BuildError> {
        self.knows(leaving)?;
        let session = self.as_installed(probed, |host| leaving.has(host))?;
        let mut inputs = session.inputs_for(Command::Leave, probed).await?;
        let stay = session.spec.control_planes().into_iter().filter(|host| !leaving.has(host));
        let mut found = Findings::default();
        delete_nodes::findings(&inputs, leaving, &mut found);
        if stay.clone().next().is_some() {
            (inputs.api_host, inputs.state) = api_host(stay, &inputs.presence);
            running_cluster::findings(&inputs, &mut found);
        }
        // Of all hosts, also of those that stay.
        identity::refuse_strangers(&inputs)?;
        other_run::refuse(&inputs)?;
        ca_rotation::findings(&inputs, &mut found);
        etcd_restore::findings(&inputs, &mut found);
        for finding in self.against_forgetting(probed, leaving).await? {
            let is_known = |known: &Finding| {
                (&known.host, known.severity, &known.message)
                    == (&finding.host, finding.severity, &finding.message)
            };
            if !found.0.iter().any(is_known) {
                found.0.push(finding);
            }
        }
        // Nothing is done on a host that is gone for good, also when it answers.
        inputs.scope = Scope::Hosts(if leaving.gone { BTreeSet::new() } else { leaving.names.clone() });
        inputs.scope = delete_cluster::scope(&inputs);
        let plan = Plan::new(delete_nodes::pipeline(&inputs, leaving), &probed.facts)?;
        Ok(Delete { findings: found.0, plan })
    }

    /// What speaks against the second round, by the facts of before the first: once the hosts have left it is too late for it.
    async fn against_forgetting(
        &self,
        probed: &Probed,
        leaving: &Leaving,
    ) -> Result<Vec<Finding>, BuildError> {
        let rest = self.without(leaving)?;
        if rest.spec.control_planes().is_empty() || rest.spec.etcd_hosts().is_empty() {
            return Ok(Vec::new());
        }
        let stays = |host: &&String| !leaving.names.contains(*host);
        let facts = probed.facts.iter().filter(|(host, _)| stays(host));
        let failures = probed.failures.iter().filter(|(host, _)| stays(host));
        let probed = Probed {
            facts: facts.map(|(host, facts)| (host.clone(), facts.clone())).collect(),
            failures: failures.map(|(host, why)| (host.clone(), why.clone())).collect(),
        };
        let Create { mut findings, needed, .. } = Box::pin(rest.plan_forget(&probed)).await?;
        findings.retain(|finding| finding.severity == Severity::Error);
        findings.extend(needed.into_iter().map(|(host, failure)| Finding {
            severity: Severity::Error,
            host: Some(host),
            message: format!("it did not answer: {}", failure.cause),
            hint: failure.hint.unwrap_or_default(),
        }));
        Ok(findings)
    }

    /// The plan by which the hosts of the file forget those that have left: nothing joins. What speaks against it is what
    /// speaks against adding nodes: a control plane that is silent now must not be taken for one that was never made.
    ///
    /// # Errors
    /// The plan cannot be built.
    pub async fn plan_forget(&self, probed: &Probed) -> Result<Create, BuildError> {
        // Their members have left, too.
        let inputs = self.inputs_for(Command::Forget, probed).await?;
        self.plan_within(inputs, Findings::default(), probed, |_| Scope::Hosts(BTreeSet::new())).await
    }
}
