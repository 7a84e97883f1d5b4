//! Plans about etcd's data.

use std::path::PathBuf;

use kk_config::Role;
use kk_engine::{Finding, Pipeline, Plan, ProbeSpec};
use tokio_util::sync::CancellationToken;

pub(crate) mod defragment;
mod restore;
pub(crate) mod snapshot;

use super::session::{Delete, Session};
use crate::{
    base::{error::BuildError, findings::Findings, probed::Probed},
    capabilities::{
        etcd::member_status::{self, MemberDetail},
        etcd_backup::{self, newest_backup},
        etcd_restore::{Snapshot, compare},
        os::ownership::{identity, other_run},
    },
    model::inputs::Inputs,
};

/// A backup on a host of etcd.
pub struct Backup {
    /// The host.
    pub host: String,
    /// Its name on the host; the time in the name is UTC.
    pub name: String,
    /// Its path on the control machine, after it was fetched.
    pub path: PathBuf,
    /// The findings, and the plan that fetches it.
    pub fetch: Delete,
}

/// Differences between a snapshot and the cluster that is restored from it.
pub struct Comparison {
    /// Findings that the user should know before the restore.
    pub findings: Vec<Finding>,
    /// The data that would be lost, as text for a question.
    pub loss: String,
}

impl Session {
    /// Compares a snapshot with the cluster, in an additional round. With `force`, a snapshot of another cluster is not an error.
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

    /// Queries the members of etcd for their status.
    pub async fn probe_etcd(&self, cancel: &CancellationToken) -> Probed {
        let spec = |host| {
            let mut spec = ProbeSpec::default();
            spec.ask(&member_status::question(&self.spec, host));
            (host, spec)
        };
        self.probe(self.spec.etcd_hosts().into_iter().map(spec).collect(), cancel, |_| {}).await
    }

    /// The members from the result of [`Session::probe_etcd`]: each host with its member, if that answers.
    pub fn members(&self, probed: &Probed) -> Vec<(String, Option<MemberDetail>)> {
        let detail = |name: &str| probed.facts.get(name)?.answer(&member_status::STATUS).answered();
        self.spec.etcd_hosts().iter().map(|host| (host.name.clone(), detail(&host.name))).collect()
    }

    /// The plan that defragments the members of etcd, one after the other, in this order.
    ///
    /// # Errors
    /// As [`Session::plan_snapshot`].
    pub async fn plan_defragment(&self, probed: &Probed, order: &[String]) -> Result<Delete, BuildError> {
        let inputs = self.etcd_inputs(probed).await?;
        let mut found = Findings::default();
        defragment::findings(&inputs, &mut found);
        plan(found, defragment::pipeline(&inputs, order), probed)
    }

    /// The plan that takes a snapshot of etcd and fetches it to the control machine.
    ///
    /// # Errors
    /// A host belongs to another cluster, another run works on it, or the plan cannot be built.
    pub async fn plan_snapshot(&self, probed: &Probed) -> Result<Delete, BuildError> {
        let inputs = self.etcd_inputs(probed).await?;
        let mut found = Findings::default();
        snapshot::findings(&inputs, &mut found);
        plan(found, snapshot::pipeline(&inputs), probed)
    }

    /// The newest backup on the hosts that answer, and the plan that fetches it.
    ///
    /// # Errors
    /// No host has a backup; otherwise as [`Session::plan_snapshot`].
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

    /// The plan that sends a snapshot to the members and verifies it there. The cluster is not changed. With `force`, hosts
    /// without an answer are not an error.
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
        restore::findings(&inputs, force, &mut found);
        plan(found, restore::send(&inputs, snapshot), probed)
    }

    /// The plan that removes a snapshot from the members after one of them refused it.
    ///
    /// # Errors
    /// As [`Session::plan_snapshot`].
    pub async fn plan_take_back(&self, probed: &Probed, snapshot: &Snapshot) -> Result<Delete, BuildError> {
        let inputs = self.etcd_inputs(probed).await?;
        plan(Findings::default(), restore::take_back(&inputs, snapshot), probed)
    }

    /// The plan that restarts etcd with a snapshot that its members have.
    ///
    /// # Errors
    /// As [`Session::plan_snapshot`].
    pub async fn plan_restore(&self, probed: &Probed, snapshot: &Snapshot) -> Result<Delete, BuildError> {
        let inputs = self.etcd_inputs(probed).await?;
        plan(Findings::default(), restore::pipeline(&inputs, snapshot), probed)
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
