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

use crate::{base::slots, capabilities::etcd::set_quota, model::inputs::Inputs};

/// Bytes per round trip.
const PART: u64 = 16 << 20;
/// The size above which etcd itself warns. It is the maximum, unless the file sets a larger quota.
const QUOTA: u64 = 8 << 30;
/// Bytes that stay free on the control machine.
const SPARE: u64 = 256 << 20;

/// Fetches the snapshot completely or not at all. Only its owner can read the file, because it contains the Secrets of the
/// cluster.
pub(super) fn task(inputs: &Inputs, host: &Host) -> Task {
    let fetch = Fetch { directory: directory(inputs), most: most(&inputs.spec.etcd) };
    Task::new("fetch_snapshot", "Fetch the snapshot")
        .timeout(Duration::from_hours(1))
        .on(&host.name, HostWork::new(vec![Box::new(fetch)]).needs(slots::snapshot_slot().key()))
}

/// The directory of snapshots on the control machine.
pub(super) fn directory(inputs: &Inputs) -> PathBuf {
    inputs.directory.join("backups")
}

/// The file of a snapshot that a host has under this name.
pub(super) fn target(directory: &Path, host: &str, name: &str) -> PathBuf {
    directory.join(format!("{host}-{name}"))
}

#[derive(Clone)]
struct Fetch {
    /// The directory on the control machine.
    directory: PathBuf,
    /// The maximum size of a snapshot in bytes. The host reports the size, and may report a wrong one.
    most: u64,
}

/// The quota of etcd plus a tenth, by which a database may exceed it.
fn most(etcd: &Etcd) -> u64 {
    let quota = set_quota(etcd).unwrap_or(QUOTA).max(QUOTA);
    quota.saturating_add(quota / 10)
}

/// Why a snapshot of this size is not fetched to a disk with this free space.
fn objection(bytes: u64, most: u64, free: u64) -> Option<(String, &'static str)> {
    let mib = |bytes: u64| format!("{} MiB", bytes >> 20);
    if bytes > most {
        return Some((
            format!("its size is {}, and kk fetches at most {}", mib(bytes), mib(most)),
            "if the database is really that large, set spec.etcd.quotaBackendBytes; otherwise check the host",
        ));
    }
    (free < bytes.saturating_add(SPARE)).then(|| {
        (
            format!(
                "its size is {}, but this machine has {} of free disk space there",
                mib(bytes),
                mib(free)
            ),
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

    /// The host does not change.
    fn is_change(&self) -> bool {
        false
    }
}

/// The file that a snapshot is received into. If the fetch ends before the file has its name, the file is removed.
struct Aside(PathBuf);

impl Drop for Aside {
    fn drop(&mut self) {
        // The error of the fetch is reported. The next fetch removes the file if this fails.
        let _ = fs::remove_file(&self.0);
    }
}

/// Creates an empty file. A file of a killed run is removed.
fn new_file(path: &Path) -> io::Result<fs::File> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => kk_util::open_private(path),
    }
}

/// The SHA-256 of the whole file, not only of the bytes that this run has written.
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
        // First, so that the file of an earlier run takes no space from this one.
        let aside = Aside(self.directory.join(".new.db"));
        let mut file = new_file(&aside.0).map_err(|error| cannot("write", &error))?;
        let free = kk_util::free_space(&self.directory).map_err(|error| cannot("write", &error))?;
        if let Some((why, hint)) = objection(taken.bytes, self.most, free) {
            return Err(cannot("fetch", &why).hint(hint));
        }
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
        // The file may have gigabytes: threads that serve other hosts must not wait for this disk.
        let sum = tokio::task::spawn_blocking(move || {
            file.sync_all()?;
            sha256_of(&mut file)
        });
        let sum = sum.await.map_err(io::Error::other).flatten().map_err(|error| cannot("write", &error))?;
        if sum != taken.sha256 {
            return Err(cannot("fetch", &"the received file differs from the file on the host; run again"));
        }
        fs::rename(&aside.0, &target).map_err(|error| cannot("write", &error))?;
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
    use kk_connector::FakeHost;
    use kk_engine::Slots;
    use tokio_util::sync::CancellationToken;

    use super::*;
    use crate::base::slots::Taken;

    #[tokio::test]
    async fn a_fetch_removes_what_an_earlier_one_has_left_and_leaves_nothing_when_it_fails() {
        let (name, whole) = ("snapshot-20260801T020000Z.db", b"whole");
        let (sum, path) = (kk_util::sha256(whole), format!("/var/backups/kube_etcd/{name}"));
        for (case, file, bytes, sha256, is_fetched) in [
            ("whole", &*path, 5, &*sum, true),
            ("too large", &path, 2 << 20, &sum, false),
            ("lost on the host", "/another", 5, &sum, false),
            ("too short", &path, 6, &kk_util::sha256(b"whole!"), false),
            ("another checksum", &path, 5, "0", false),
        ] {
            let directory = tempfile::tempdir().unwrap();
            fs::write(directory.path().join(".new.db"), "half of another").unwrap();
            let slots = Slots::default();
            let taken = Taken { path: path.clone(), sha256: sha256.into(), bytes, revision: 1 };
            slots.fill(&slots::snapshot_slot(), taken);
            let context = Context {
                host: "node1".into(),
                connection: Arc::new(FakeHost::new("node1").with_file(file, whole, 0o600)),
                slots,
                cancel: CancellationToken::new(),
                progress: Arc::new(|_, _| {}),
                note: Arc::new(|_| {}),
            };
            let fetch = Fetch { directory: directory.path().to_owned(), most: 1 << 20 };
            let result = fetch.run(context).await;
            assert_eq!(result.is_ok(), is_fetched, "{case}: {result:?}");
            let left: Vec<_> =
                fs::read_dir(directory.path()).unwrap().map(|entry| entry.unwrap().path()).collect();
            let wanted = is_fetched.then(|| target(directory.path(), "node1", name));
            assert_eq!(left, Vec::from_iter(wanted), "{case}");
        }
    }

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
