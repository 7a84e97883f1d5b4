//! Plans about etcd's data.

use std::path::PathBuf;

use kk_config::Role;
use kk_engine::{Finding, Pipeline, Plan, ProbeSpec};
use tokio_util::sync::CancellationToken;

use super::{Delete, Session};
use crate::{
    base::{error::BuildError, findings::Findings, probed::Probed},
    capabilities::{
        etcd::member_status::{self, MemberDetail},
        etcd_backup::{self, newest_backup},
        etcd_restore::{Snapshot, compare},
        os::{identity, other_run},
    },
    commands::pipelines::{defragment_etcd, restore_etcd, snapshot_etcd},
    model::inputs::Inputs,
};

/// A backup that a host of etcd has.
pub struct Backup {
    /// The host.
    pub host: String,
    /// Its name there; the time in it is UTC.
    pub name: String,
    /// Where it is on the control machine once it was fetched.
    pub path: PathBuf,
    /// What was noticed, and how it is fetched.
    pub fetch: Delete,
}

/// How a snapshot differs from the cluster that goes back to it.
pub struct Comparison {
    /// What the person should know first.
    pub findings: Vec<Finding>,
    /// What is lost, for a question.
    pub loss: String,
}

impl Session {
    /// Compares a snapshot with what is there, in a round of its own. With `force` another cluster is no error.
    ///
    /// # Errors
    /// As [`Session::plan_snapshot`].
    pub async fn compare(
        &self,
        probed: &Probed,
        snapshot: &Snapshot,
        force: bool,
        cancel: &CancellationToken,
    ) -> Result<Comparison, BuildError> {
        let inputs = self.etcd_inputs(probed).await?;
        let mut specs = Vec::new();
        for (host, _) in inputs.hosts() {
            let mut spec = ProbeSpec::default();
            if host.has_role(&Role::Etcd) {
                spec.ask(&member_status::question(&self.spec, host));
            }
            if host.name == inputs.api_host.name && inputs.state.answered {
                spec.ask(&compare::uid_question(host));
            }
            specs.push((host, spec));
        }
        specs.retain(|(_, spec)| !spec.questions.is_empty());
        let asked = self.probe(specs, cancel, |_| {}).await;
        let uid =
            asked.facts.get(&inputs.api_host.name).and_then(|facts| facts.answer(&compare::UID).answered());
        let uid = uid.filter(|uid| !uid.is_empty());
        let members =
            asked.facts.values().filter_map(|facts| facts.answer(&member_status::STATUS).answered());
        let revision = members.map(|member| member.revision).max();
        let mut found = Findings::default();
        compare::findings(&inputs, snapshot, uid.as_deref(), revision, force, &mut found);
        Ok(Comparison { findings: found.0, loss: compare::loss(snapshot, revision) })
    }

    /// Asks the members of etcd what they are like.
    pub async fn probe_etcd(&self, cancel: &CancellationToken) -> Probed {
        let spec = |host| {
            let mut spec = ProbeSpec::default();
            spec.ask(&member_status::question(&self.spec, host));
            (host, spec)
        };
        self.probe(self.spec.etcd_hosts().into_iter().map(spec).collect(), cancel, |_| {}).await
    }

    /// What [`Session::probe_etcd`] has brought: each host with its member, if it answers.
    pub fn members(&self, probed: &Probed) -> Vec<(String, Option<MemberDetail>)> {
        let detail = |name: &str| probed.facts.get(name)?.answer(&member_status::STATUS).answered();
        self.spec.etcd_hosts().iter().map(|host| (host.name.clone(), detail(&host.name))).collect()
    }

    /// The plan by which members of etcd give back space, one after the other, in this order.
    ///
    /// # Errors
    /// As [`Session::plan_snapshot`].
    pub async fn plan_defragment(&self, probed: &Probed, order: &[String]) -> Result<Delete, BuildError> {
        let inputs = self.etcd_inputs(probed).await?;
        let mut found = Findings::default();
        defragment_etcd::findings(&inputs, &mut found);
        plan(found, defragment_etcd::pipeline(&inputs, order), probed)
    }

    /// The plan by which a snapshot of etcd is taken and fetched to the control machine.
    ///
    /// # Errors
    /// A host belongs to another cluster or to another run, or the plan cannot be built.
    pub async fn plan_snapshot(&self, probed: &Probed) -> Result<Delete, BuildError> {
        let inputs = self.etcd_inputs(probed).await?;
        let mut found = Findings::default();
        snapshot_etcd::findings(&inputs, &mut found);
        plan(found, snapshot_etcd::pipeline(&inputs), probed)
    }

    /// The newest backup on the hosts that answer, and the plan by which it is fetched.
    ///
    /// # Errors
    /// No host has one; else as [`Session::plan_snapshot`].
    pub async fn newest_backup(&self, probed: &Probed) -> Result<Backup, BuildError> {
        let inputs = self.etcd_inputs(probed).await?;
        let (host, name) = newest_backup(&inputs).ok_or_else(|| {
            let directory = &inputs.spec.etcd.backup_dir;
            BuildError::config(
                format!("no host of etcd that answers has a backup in {directory}"),
                "specify a snapshot on the control machine: --snapshot FILE",
            )
        })?;
        let mut found = Findings::default();
        etcd_backup::unanswered(&inputs, &mut found);
        let pipeline = Pipeline::new(vec![etcd_backup::fetch(&inputs, host, &name)]);
        Ok(Backup {
            host: host.name.clone(),
            path: etcd_backup::fetched(&inputs, host, &name),
            fetch: plan(found, pipeline, probed)?,
            name,
        })
    }

    /// The plan by which the members get a snapshot and verify it. Nothing of the cluster is changed. With `force` hosts that do not
    /// answer are no error.
    ///
    /// # Errors
    /// As [`Session::plan_snapshot`].
    pub async fn plan_send(
        &self,
        probed: &Probed,
        snapshot: &Snapshot,
        force: bool,
    ) -> Result<Delete, BuildError> {
        let inputs = self.etcd_inputs(probed).await?;
        let mut found = Findings::default();
        restore_etcd::findings(&inputs, force, &mut found);
        plan(found, restore_etcd::send(&inputs, snapshot), probed)
    }

    /// The plan by which the members lose a snapshot that one of them has refused.
    ///
    /// # Errors
    /// As [`Session::plan_snapshot`].
    pub async fn plan_take_back(&self, probed: &Probed, snapshot: &Snapshot) -> Result<Delete, BuildError> {
        let inputs = self.etcd_inputs(probed).await?;
        plan(Findings::default(), restore_etcd::take_back(&inputs, snapshot), probed)
    }

    /// The plan by which etcd starts again with a snapshot that its members have.
    ///
    /// # Errors
    /// As [`Session::plan_snapshot`].
    pub async fn plan_restore(&self, probed: &Probed, snapshot: &Snapshot) -> Result<Delete, BuildError> {
        let inputs = self.etcd_inputs(probed).await?;
        plan(Findings::default(), restore_etcd::pipeline(&inputs, snapshot), probed)
    }

    async fn etcd_inputs<'a>(&'a self, probed: &'a Probed) -> Result<Inputs<'a>, BuildError> {
        let inputs = self.create_inputs(probed).await?;
        identity::refuse_strangers(&inputs)?;
        other_run::refuse(&inputs)?;
        Ok(inputs)
    }
}

fn plan(found: Findings, pipeline: Pipeline, probed: &Probed) -> Result<Delete, BuildError> {
    Ok(Delete { findings: found.0, plan: Plan::new(pipeline, &probed.facts)? })
}
