//! Fetch the snapshot to this machine.

use std::{
    fs,
    io::Write as _,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use async_trait::async_trait;
use kk_config::Host;
use kk_engine::{Action, Apply, Change, Context, Facts, Failure, HostWork, Run, Task};
use sha2::{Digest as _, Sha256};

use crate::{inputs::Inputs, slots};

/// Bytes of one round trip.
const PART: u64 = 16 << 20;

/// Whole or not at all, readable for its owner only: it holds the Secrets of the cluster.
pub(super) fn task(inputs: &Inputs, host: &Host) -> Task {
    let fetch = Fetch { directory: directory(inputs) };
    Task::new("fetch_snapshot", "Fetch the snapshot")
        .timeout(Duration::from_hours(1))
        .on(&host.name, HostWork::new(vec![Box::new(fetch)]).needs(slots::snapshot_slot().key()))
}

/// Where snapshots are on this machine.
pub(super) fn directory(inputs: &Inputs) -> PathBuf {
    inputs.directory.join("backups")
}

/// The file of a snapshot that a host has under this name.
pub(super) fn target(directory: &Path, host: &str, name: &str) -> PathBuf {
    directory.join(format!("{host}-{name}"))
}

#[derive(Clone)]
struct Fetch {
    /// On this machine.
    directory: PathBuf,
}

impl Action for Fetch {
    fn check(&self, _facts: &Facts) -> Change {
        Change::needed(format!("fetch it to {}", self.directory.display()))
    }

    fn apply(&self, _facts: &Facts) -> Apply {
        Apply::Run(Arc::new(self.clone()))
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
        let aside = self.directory.join(".new.db");
        let mut file = kk_util::open_private(&aside).map_err(|error| cannot("write", &error))?;
        let (mut sum, mut done) = (Sha256::new(), 0);
        while done < taken.bytes {
            let part = context.connection.read_part(&taken.path, done, PART).await?;
            if part.is_empty() {
                break;
            }
            file.write_all(&part).map_err(|error| cannot("write", &error))?;
            sum.update(&part);
            done += part.len() as u64;
            (context.progress)(done, taken.bytes);
        }
        if kk_util::hex(sum.finalize()) != taken.sha256 {
            return Err(cannot("fetch", &"what came is not what the host has; run again"));
        }
        file.sync_all().map_err(|error| cannot("write", &error))?;
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
