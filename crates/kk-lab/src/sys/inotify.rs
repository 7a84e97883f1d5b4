//! The kernel's limit of inotify instances, a setting that all labs of this machine share. The state directory of one of them
//! holds the value from before the first lab; the last `down` restores it.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::sys::{instance, paths};

/// inotify instances a user may have: 128, the kernel's default, is too few for three kubelets with their containers.
const WANTED: u64 = 8192;
const LIMIT: &str = "/proc/sys/fs/inotify/max_user_instances";
const RECORD: &str = "inotify-before";

/// Raises the limit, and records the value before.
pub(crate) fn raise() -> Result<()> {
    let _alone = paths::lock_machine()?;
    let now: u64 = fs::read_to_string(LIMIT)?.trim().parse()?;
    if now < WANTED {
        // The record first: after a crash in between, the recorded value is still the right one to restore.
        let record = paths::state(RECORD);
        if !record.exists() && record_of_another_lab().is_none() {
            fs::write(&record, now.to_string())?;
        }
        fs::write(LIMIT, WANTED.to_string()).with_context(|| format!("cannot raise {LIMIT}"))?;
    }
    Ok(())
}

/// Restores the value that this lab recorded, or hands the record to another lab that is still up.
pub(crate) fn restore() -> Result<()> {
    let _alone = paths::lock_machine()?;
    let record = paths::state(RECORD);
    let Ok(before) = fs::read_to_string(&record) else { return Ok(()) };
    if let Some(other) = instance::other_states().first() {
        return hand_over(&record, other);
    }
    fs::write(LIMIT, before).with_context(|| format!("cannot restore {LIMIT}"))
}

fn record_of_another_lab() -> Option<PathBuf> {
    instance::other_states().into_iter().map(|state| state.join(RECORD)).find(|record| record.exists())
}

fn hand_over(record: &Path, state: &Path) -> Result<()> {
    let to = state.join(RECORD);
    fs::rename(record, &to).with_context(|| format!("cannot move {} to {}", record.display(), to.display()))
}
