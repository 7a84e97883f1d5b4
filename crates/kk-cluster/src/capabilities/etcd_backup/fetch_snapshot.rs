//! Fetch the snapshot to the control machine.

use std::{
    fs,
    io::{self, Read as _, Seek as _, Write as _},
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use async_trait::async_trait;
use kk_config::{Etcd, Host};
use kk_engine::{Action, Apply, Change, Context, Facts, Failure, HostWork, Run, Task};
use sha2::{Digest as _, Sha256};

use crate::{capabilities::etcd::set_quota, inputs::Inputs, slots};

/// Bytes of one round trip.
const PART: u64 = 16 << 20;
/// What etcd itself warns to exceed: the most where the file does not say more.
const QUOTA: u64 = 8 << 30;
/// What stays free on the control machine.
const SPARE: u64 = 256 << 20;

/// Whole or not at all, readable for its owner only: it holds the Secrets of the cluster.
pub(super) fn task(inputs: &Inputs, host: &Host) -> Task {
    let fetch = Fetch { directory: directory(inputs), most: most(&inputs.spec.etcd) };
    Task::new("fetch_snapshot", "Fetch the snapshot")
        .timeout(Duration::from_hours(1))
        .on(&host.name, HostWork::new(vec![Box::new(fetch)]).needs(slots::snapshot_slot().key()))
}

/// Where snapshots are on the control machine.
pub(super) fn directory(inputs: &Inputs) -> PathBuf {
    inputs.directory.join("backups")
}

/// The file of a snapshot that a host has under this name.
pub(super) fn target(directory: &Path, host: &str, name: &str) -> PathBuf {
    directory.join(format!("{host}-{name}"))
}

#[derive(Clone)]
struct Fetch {
    /// On the control machine.
    directory: PathBuf,
    /// Bytes that a snapshot may have. The size is what the host says, and it may lie.
    most: u64,
}

/// The quota of etcd and a tenth: that much a database may exceed it.
fn most(etcd: &Etcd) -> u64 {
    let quota = set_quota(etcd).unwrap_or(QUOTA).max(QUOTA);
    quota.saturating_add(quota / 10)
}

/// Why so many bytes are not fetched to a disk with so many free ones.
fn objection(bytes: u64, most: u64, free: u64) -> Option<(String, &'static str)> {
    let mib = |bytes: u64| format!("{} MiB", bytes >> 20);
    if bytes > most {
        return Some((
            format!("it has {}, and kk fetches at most {}", mib(bytes), mib(most)),
            "set spec.etcd.quotaBackendBytes if the database is so large; otherwise check what the host claims",
        ));
    }
    (free < bytes.saturating_add(SPARE)).then(|| {
        (
            format!("it has {}, and this machine has {} of free disk there", mib(bytes), mib(free)),
            "make room, or choose another directory with --workdir",
        )
    })
}

impl Action for Fetch {
    fn check(&self, _facts: &Facts) -> Change {
        Change::needed(format!("fetch it to {}", self.directory.display()))
    }

    fn apply(&self, _facts: &Facts) -> Apply {
        Apply::Run(Arc::new(self.clone()))
    }

    /// The host stays as it is.
    fn is_change(&self) -> bool {
        false
    }
}

/// An empty file. What a run that was killed has left goes.
fn new_file(path: &Path) -> io::Result<fs::File> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => kk_util::open_private(path),
    }
}

/// Of all that is in the file, not only of what this run has written.
fn sha256_of(file: &mut fs::File) -> io::Result<String> {
    let (mut sum, mut buffer) = (Sha256::new(), vec![0; 1 << 20]);
    file.rewind()?;
    loop {
        match file.read(&mut buffer)? {
            0 => return Ok(kk_util::hex(sum.finalize())),
            count => sum.update(&buffer[..count]),
        }
    }
}

#[async_trait]
impl Run for Fetch {
    async fn run(&self, context: Context) -> Result<(), Failure> {
        let taken = context.slots.get(&slots::snapshot_slot());
        let taken = taken.ok_or_else(|| Failure::new("no snapshot was taken"))?;
        let name = taken.path.rsplit('/').next().unwrap_or_default();
        let target = target(&self.directory, &context.host, name);
        let cannot = |what: &str, why: &dyn std::fmt::Display| {
            Failure::new(format!("cannot {what} the snapshot {}: {why}", target.display()))
        };
        kk_util::create_private_directory(&self.directory).map_err(|error| cannot("write", &error))?;
        let disk = rustix::fs::statvfs(&self.directory).map_err(|error| cannot("write", &error))?;
        if let Some((why, hint)) =
            objection(taken.bytes, self.most, disk.f_bavail.saturating_mul(disk.f_frsize))
        {
            return Err(cannot("fetch", &why).hint(hint));
        }
        let aside = self.directory.join(".new.db");
        let mut file = new_file(&aside).map_err(|error| cannot("write", &error))?;
        let mut done = 0;
        while done < taken.bytes {
            let part = context.connection.read_part(&taken.path, done, PART.min(taken.bytes - done)).await?;
            if part.is_empty() || part.len() as u64 > taken.bytes - done {
                break;
            }
            file.write_all(&part).map_err(|error| cannot("write", &error))?;
            done += part.len() as u64;
            (context.progress)(done, taken.bytes);
        }
        file.sync_all().map_err(|error| cannot("write", &error))?;
        let sum = sha256_of(&mut file).map_err(|error| cannot("read", &error))?;
        if sum != taken.sha256 {
            return Err(cannot("fetch", &"what came is not what the host has; run again"));
        }
        fs::rename(&aside, &target).map_err(|error| cannot("write", &error))?;
        fs::File::open(&self.directory)
            .and_then(|directory| directory.sync_all())
            .map_err(|error| cannot("write", &error))?;
        context.slots.output("snapshot", target.display().to_string());
        Ok(())
    }

    fn transfers(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_cannot_fill_the_disk_by_what_it_says_of_a_snapshot() {
        let etcd = |quota_backend_bytes| Etcd { quota_backend_bytes, ..Etcd::default() };
        let (gib, all) = (1 << 30, u64::MAX);
        for (etcd, bytes, free, why) in [
            (etcd(None), 8 * gib, all, None),
            (etcd(None), 9 * gib, all, Some("kk fetches at most 9011 MiB")),
            (etcd(None), all, all, Some("at most")),
            (etcd(Some(0)), 9 * gib, all, Some("at most 9011 MiB")),
            (etcd(Some(gib)), 8 * gib, all, None),
            (etcd(Some(20 * gib)), 21 * gib, all, None),
            (etcd(None), gib, gib, Some("free disk")),
            (etcd(None), gib, 2 * gib, None),
        ] {
            let said = objection(bytes, most(&etcd), free).map(|(why, _)| why);
            assert_eq!(said.is_some(), why.is_some(), "{bytes} {said:?}");
            assert!(said.unwrap_or_default().contains(why.unwrap_or_default()), "{bytes}");
        }
    }

    #[test]
    fn what_a_killed_run_has_left_is_no_part_of_the_next_snapshot() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join(".new.db");
        new_file(&path).unwrap().write_all(b"half of another").unwrap();
        let mut file = new_file(&path).unwrap();
        file.write_all(b"whole").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"whole");
        assert_eq!(sha256_of(&mut file).unwrap(), kk_util::sha256(b"whole"));
        fs::OpenOptions::new().append(true).open(&path).unwrap().write_all(b" and more").unwrap();
        assert_eq!(sha256_of(&mut file).unwrap(), kk_util::sha256(b"whole and more"));
    }
}
