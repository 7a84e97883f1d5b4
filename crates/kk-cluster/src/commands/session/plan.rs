//! The plans of the commands, with their findings.

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

/// The plan of `kk create cluster`.
pub struct Create {
    /// Findings that the user should know first. If one of them is an error, the plan must not run.
    pub findings: Vec<Finding>,
    /// The work.
    pub plan: Plan,
    /// Messages about binaries whose checksum no catalogue contains.
    pub notes: Vec<String>,
    /// Hosts that did not answer and that the plan needs: if there is one, the plan must not run.
    pub needed: BTreeMap<String, Failure>,
    /// The certificates of the control planes that the plan does not renew.
    pub certificates: Certificates,
    /// The nodes that join.
    pub joining: Vec<Host>,
    /// Warnings about addons that the plan leaves out, because a part of them cannot be fetched.
    pub left_out: Vec<Finding>,
    /// Names of the nodes that are drained at the beginning of a turn of an upgrade.
    pub drained: BTreeSet<String>,
}

/// How long the certificates of the control planes are valid.
pub struct Certificates {
    kept: Vec<Validity>,
}

impl Certificates {
    /// Until when the certificates of the control planes are valid after the plan was carried out. This compares the remaining
    /// certificates with the administrator's, which is as old as the renewed ones.
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

/// The plan of `kk delete cluster`.
pub struct Delete {
    /// Findings that the user should know first.
    pub findings: Vec<Finding>,
    /// The work.
    pub plan: Plan,
}

impl Session {
    /// The plan of a create for the hosts of a scope, in a running cluster that matches the file.
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

    /// Whether the API of a running cluster answers.
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

    /// The status of the cluster, and the changes that a create would make. Only the hosts are queried, not the servers of
    /// downloads.
    ///
    /// # Errors
    /// As [`Session::plan_create`].
    pub async fn status(&self, probed: &Probed) -> Result<Status, BuildError> {
        let inputs = self.create_inputs(probed).await?;
        let findings = precheck::precheck(&create_cluster::capabilities(&self.spec), &inputs);
        let plan = Plan::new(create_cluster::pipeline(&inputs)?, &probed.facts)?;
        Ok(status::of(&inputs, findings, plan.changes()))
    }

    /// The certificates by expiry, the earliest first.
    ///
    /// # Errors
    /// As [`Session::plan_create`].
    pub async fn certificates(&self, probed: &Probed) -> Result<Vec<CertificateStatus>, BuildError> {
        Ok(status::certificates(&self.create_inputs(probed).await?))
    }
}
