//! Plans about etcd's data.

use std::{
    fs::File,
    io::{self, Read as _},
    path::{Path, PathBuf},
    time::SystemTime,
};

use kk_engine::{Pipeline, Plan, ProbeSpec};
use sha2::{Digest as _, Sha256};
use tokio_util::sync::CancellationToken;

use super::{Delete, Session};
use crate::{
    BuildError, Probed,
    capabilities::{
        etcd::member_status::{self, MemberDetail},
        etcd_backup::{self, newest_backup},
        etcd_restore::Snapshot,
        os::{identity, other_run},
    },
    findings::Findings,
    inputs::Inputs,
    pipelines::{defragment_etcd, restore_etcd, snapshot_etcd},
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

impl Session {
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
            let directory = &inputs.spec.etcd.backup.dir;
            BuildError::config(
                format!("no host of etcd that answers has a backup in {directory}"),
                "name a snapshot on the control machine: --snapshot FILE",
            )
        })?;
        let pipeline = Pipeline::new(vec![etcd_backup::fetch(&inputs, host, &name)]);
        Ok(Backup {
            host: host.name.clone(),
            path: etcd_backup::fetched(&inputs, host, &name),
            fetch: plan(Findings::default(), pipeline, probed)?,
            name,
        })
    }

    /// The plan by which the members get a snapshot and verify it. Nothing of the cluster is changed.
    ///
    /// # Errors
    /// As [`Session::plan_snapshot`].
    pub async fn plan_send(&self, probed: &Probed, snapshot: &Snapshot) -> Result<Delete, BuildError> {
        let inputs = self.etcd_inputs(probed).await?;
        let mut found = Findings::default();
        restore_etcd::findings(&inputs, &mut found);
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

impl Snapshot {
    /// Reads a file of the control machine.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn open(path: &Path) -> Result<Self, BuildError> {
        let cannot = |error: io::Error| {
            BuildError::config(
                format!("cannot read the snapshot {}: {error}", path.display()),
                "give a file that kk etcd snapshot or etcdctl snapshot save has written",
            )
        };
        let mut file = File::open(path).map_err(cannot)?;
        let written = file.metadata().and_then(|data| data.modified()).unwrap_or(SystemTime::UNIX_EPOCH);
        let (mut sum, mut part) = (Sha256::new(), vec![0; 1 << 20]);
        loop {
            let length = file.read(&mut part).map_err(cannot)?;
            if length == 0 {
                break;
            }
            sum.update(&part[..length]);
        }
        let written = time::OffsetDateTime::from(written)
            .replace_nanosecond(0)
            .unwrap_or(time::OffsetDateTime::UNIX_EPOCH);
        let time = written.format(&time::format_description::well_known::Rfc3339).unwrap_or_default();
        let time = taken_at(path).unwrap_or_else(|| format!("a file written at {time}"));
        Ok(Self { path: path.to_owned(), sha256: kk_util::hex(sum.finalize()), time })
    }
}

/// The time in the name of a backup: `…snapshot-20260801T020000Z.db`. That of the file is when it was copied.
fn taken_at(path: &Path) -> Option<String> {
    let name = path.file_stem()?.to_str()?;
    let (_, time) = name.rsplit_once("snapshot-")?;
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let (day, rest) = time.split_at_checked(8)?;
    let clock = rest.strip_prefix('T')?.strip_suffix('Z')?;
    (digits(day) && digits(clock) && clock.len() == 6).then(|| {
        format!(
            "{}-{}-{} {}:{}:{} UTC",
            &day[..4],
            &day[4..6],
            &day[6..],
            &clock[..2],
            &clock[2..4],
            &clock[4..]
        )
    })
}

fn plan(found: Findings, pipeline: Pipeline, probed: &Probed) -> Result<Delete, BuildError> {
    Ok(Delete { findings: found.0, plan: Plan::new(pipeline, &probed.facts)? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_of_a_backup_is_in_its_name() {
        for (name, time) in [
            ("node1-snapshot-20260801T020059Z.db", Some("2026-08-01 02:00:59 UTC")),
            ("/a/snapshot-20260801T020059Z.db", Some("2026-08-01 02:00:59 UTC")),
            ("snapshot.db", None),
            ("snapshot-2026.db", None),
            ("snapshot-20260801T0200Z.db", None),
            ("mine.db", None),
        ] {
            assert_eq!(taken_at(Path::new(name)).as_deref(), time, "{name}");
        }
    }
}
