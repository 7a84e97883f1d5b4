//! The directory for temporary files: what an operator that was killed left there is removed at the next start.

use std::fs::{self, DirBuilder, File, TryLockError};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::Path;

use crate::hook::COPIES;

/// Held as long as an operator uses the directory: a lock on the directory itself.
#[derive(Debug)]
pub(super) struct InUse(#[expect(dead_code, reason = "the lock ends with the file")] Option<File>);

/// Makes the directory if it is missing, and removes what was left in it, unless another operator uses it or files are
/// to be kept.
pub(super) fn prepare(dir: &Path, keep: bool) -> io::Result<InUse> {
    DirBuilder::new().recursive(true).mode(0o700).create(dir)?;
    let user = tempfile::tempfile_in(dir)?.metadata()?.uid();
    refuse_of_another(dir, user)?;
    refuse_writable_for_others(dir)?;
    let lock = File::open(dir)?;
    match lock.try_lock() {
        Ok(()) => {
            let removed = if keep { 0 } else { sweep(dir, user)? };
            if removed > 0 {
                tracing::info!(removed, "removed temporary files of an operator that was killed");
            }
        }
        Err(TryLockError::WouldBlock) => {}
        // Some network file systems have no locks: then other operators cannot be detected.
        Err(TryLockError::Error(error)) => {
            tracing::debug!(error = error.to_string(), "cannot lock the directory for temporary files");
            return Ok(InUse(None));
        }
    }
    // Another operator that starts at this moment removes the leftovers; this operator has not created any files yet.
    lock.lock_shared()?;
    Ok(InUse(Some(lock)))
}

/// A user who created the directory, or a link to it, could replace the copies of hooks that this user runs.
fn refuse_of_another(dir: &Path, user: u32) -> io::Result<()> {
    let owners = [fs::symlink_metadata(dir)?.uid(), fs::metadata(dir)?.uid()];
    match owners.into_iter().find(|owner| ![0, user].contains(owner)) {
        None => Ok(()),
        Some(owner) => Err(io::Error::other(format!(
            "it belongs to another user (uid {owner}): remove it, or name another one with --tmp-dir"
        ))),
    }
}

/// Other users with write permission could replace copies of hooks, too, unless the sticky bit protects files of their owner.
fn refuse_writable_for_others(dir: &Path) -> io::Result<()> {
    let mode = fs::metadata(dir)?.mode() & 0o7777;
    if mode & 0o022 == 0 || mode & 0o1000 != 0 {
        return Ok(());
    }
    Err(io::Error::other(format!(
        "other users can replace files in it (mode {mode:o}): remove their write permission, or set --tmp-dir to a directory that \
         does not exist, which the operator creates"
    )))
}

/// Removes files of runs and copies of hooks that belong to the user; how many there were.
fn sweep(dir: &Path, user: u32) -> io::Result<usize> {
    let mut removed = 0;
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        let name = entry.file_name();
        let name = name.to_string_lossy();
        // Another process may remove it at the same time.
        let Ok(metadata) = entry.metadata() else { continue };
        let own = metadata.uid() == user;
        let gone = match (own, metadata.is_dir()) {
            (true, false) if is_of_a_run(&name) => fs::remove_file(entry.path()),
            (true, true) if name.starts_with(COPIES) => fs::remove_dir_all(entry.path()),
            _ => continue,
        };
        removed += usize::from(gone.is_ok());
    }
    Ok(removed)
}

/// Whether `name` is like `hook-a-sh-binding-context-12-1770000000000000000-0.json`: process, nanoseconds, number.
fn is_of_a_run(name: &str) -> bool {
    let kinds =
        ["-binding-context-", "-metrics-", "-object-patch-", "-admission-response-", "-conversion-response-"];
    let Some(id) = kinds.iter().find_map(|kind| Some(name.rsplit_once(kind)?.1)) else { return false };
    let parts: Vec<&str> = id.trim_end_matches(".json").split('-').collect();
    parts.len() == 3 && parts.iter().all(|part| part.parse::<u64>().is_ok())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt as _, chown, lchown, symlink};

    use super::*;
    use crate::hook::RunFiles;

    fn names(dir: &Path) -> Vec<String> {
        let entries = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().file_name());
        let mut names: Vec<String> = entries.map(|name| name.into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn what_a_killed_operator_left_is_removed_and_nothing_else() {
        let dir = tempfile::tempdir().unwrap();
        for name in ["hook-of-mine.json", "a-metrics-1.json", "a-object-patch-x-y-z"] {
            fs::write(dir.path().join(name), "").unwrap();
        }
        fs::create_dir(dir.path().join("loaded-abc")).unwrap();
        let others = names(dir.path());
        RunFiles::create(dir.path(), "a/b.sh", true).unwrap();
        fs::create_dir_all(dir.path().join(format!("{COPIES}abc/below"))).unwrap();
        assert_eq!(names(dir.path()).len(), others.len() + 6);
        drop(prepare(dir.path(), true).unwrap());
        assert_eq!(names(dir.path()).len(), others.len() + 6, "they are to be kept");
        let _in_use = prepare(dir.path(), false).unwrap();
        assert_eq!(names(dir.path()), others);
    }

    #[test]
    fn a_directory_or_a_link_of_another_user_is_refused() {
        let parent = tempfile::tempdir().unwrap();
        let (dir, link) = (parent.path().join("made/below"), parent.path().join("link"));
        drop(prepare(&dir, false).unwrap());
        let data = fs::metadata(&dir).unwrap();
        assert_eq!(data.mode() & 0o7777, 0o700);
        symlink(&dir, &link).unwrap();
        drop(prepare(&link, false).unwrap());
        // Every user may use root's directories to which root grants access.
        let user = data.uid();
        let (theirs, of_link) = (refuse_of_another(&dir, user + 1), refuse_of_another(&link, user + 1));
        assert_eq!((theirs.is_ok(), of_link.is_ok()), (user == 0, user == 0));
        if user == 0 {
            lchown(&link, Some(1), None).unwrap();
            assert!(refuse_of_another(&dir, user).is_ok());
            assert!(prepare(&link, false).is_err_and(|error| error.to_string().contains("(uid 1)")));
            chown(&dir, Some(1), None).unwrap();
            assert!(prepare(&dir, false).is_err());
        }
    }

    #[test]
    fn a_directory_in_which_other_users_can_replace_files_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        for (mode, fits) in [
            (0o700, true),
            (0o755, true),
            (0o1777, true),
            (0o1770, true),
            (0o777, false),
            (0o2770, false),
            (0o702, false),
        ] {
            fs::set_permissions(dir.path(), fs::Permissions::from_mode(mode)).unwrap();
            let prepared = prepare(dir.path(), false).map_err(|error| error.to_string());
            match prepared {
                Ok(_) => assert!(fits, "{mode:o}"),
                Err(error) => assert!(!fits && error.contains(&format!("(mode {mode:o})")), "{error}"),
            }
        }
    }

    #[test]
    fn files_of_an_operator_that_runs_stay() {
        let dir = tempfile::tempdir().unwrap();
        let first = prepare(dir.path(), false).unwrap();
        RunFiles::create(dir.path(), "a", true).unwrap();
        let _second = prepare(dir.path(), false).unwrap();
        assert_eq!(names(dir.path()).len(), 5);
        drop(first);
        let _third = prepare(dir.path(), false).unwrap();
        assert_eq!(names(dir.path()).len(), 5, "the second one runs");
    }
}
