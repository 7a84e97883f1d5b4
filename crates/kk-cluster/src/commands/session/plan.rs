//! The plans of the commands, and what comes with them.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
};

use kk_config::Host;
use kk_engine::{Failure, Finding, Pipeline, Plan};

use super::Session;
use crate::{
    base::{
        certificates::{self, Validity},
        error::BuildError,
        findings::Findings,
        probed::Probed,
    },
    capabilities::{control_plane, nodes::record_joins},
    commands::{
        add_nodes, create_cluster, precheck, running_cluster,
        status::{self, CertificateStatus, Status},
    },
    model::{
        cluster::{Cluster, Scope},
        inputs::Inputs,
        offline,
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
    /// What a create does, but for the hosts of a scope, in a cluster that runs as the file says.
    pub(in crate::commands) async fn plan_within(
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

    pub(in crate::commands) async fn plan(
        &self,
        inputs: Inputs<'_>,
        found: Findings,
        probed: &Probed,
    ) -> Result<Create, BuildError> {
        let pipeline = create_cluster::pipeline(&inputs)?;
        Box::pin(self.plan_of(inputs, found, probed, pipeline)).await
    }

    pub(in crate::commands) async fn plan_of(
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
}
