//! The records of a run on the control machine: a directory with journal, log and, with `--debug`, the trace.

use std::{
    fs::{self, DirBuilder},
    io,
    os::unix::fs::DirBuilderExt,
    path::{Path, PathBuf},
};

use kk_engine::{Journal, Listener, LogFile, Redactor};
use kk_util::create_private_directory;
use time::{OffsetDateTime, format_description::BorrowedFormatItem, macros::format_description};

use crate::error::Error;

use super::{lock::Lock, trace::Trace};

/// Number of runs of a cluster that are kept, including the current run.
const KEPT: usize = 50;
/// Length of the time in the name of a run: `20260102-030405`.
const TIME: usize = 15;

/// The open files of a run; a dry run has none.
#[derive(Default)]
pub(super) struct Records {
    /// `<cluster>/runs/<time>-<command>/`.
    pub(super) directory: Option<PathBuf>,
    /// Journal and log.
    pub(super) listeners: Vec<Box<dyn Listener>>,
    /// With `--debug`.
    pub(super) trace: Option<Trace>,
    /// Held until the run ends.
    pub(super) lock: Option<Lock>,
}

impl Records {
    /// Takes the cluster's lock and creates the directory of the run.
    pub(super) fn create(
        cluster: &Path,
        command: &str,
        time: OffsetDateTime,
        debug: bool,
        redactor: &Redactor,
    ) -> Result<Self, Error> {
        let lock = Lock::take(cluster)?;
        let time = formatted(time, format_description!("[year][month][day]-[hour][minute][second]"));
        let runs = cluster.join("runs");
        let directory = create_directory(&runs, &format!("{time}-{}", command.replace(' ', "-")))?;
        prune(&runs, &directory);
        let failed = |error| Error::workdir(&directory, error);
        let journal = Journal::create(&directory).map_err(failed)?;
        let log = LogFile::create(&directory).map_err(failed)?;
        let trace = debug.then(|| Trace::create(&directory, redactor.clone())).transpose().map_err(failed)?;
        Ok(Self {
            lock: Some(lock),
            listeners: vec![Box::new(journal), Box::new(log)],
            trace,
            directory: Some(directory),
        })
    }
}

/// Creates the directory `name` below `runs`, or `name-2` if a run of the same second uses that name.
fn create_directory(runs: &Path, name: &str) -> Result<PathBuf, Error> {
    create_private_directory(runs).map_err(|error| Error::workdir(runs, error))?;
    let mut number = 1;
    loop {
        let directory = runs.join(if number == 1 { name.to_owned() } else { format!("{name}-{number}") });
        match DirBuilder::new().mode(0o700).create(&directory) {
            Ok(()) => return Ok(directory),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => number += 1,
            Err(error) => return Err(Error::workdir(&directory, error)),
        }
    }
}

/// Removes the oldest runs beyond [`KEPT`]. Names of runs begin with their time. The `present` run is never removed, even if it
/// is the oldest because the clock was set back.
fn prune(runs: &Path, present: &Path) {
    let Ok(entries) = fs::read_dir(runs) else { return };
    let is_run = |path: &PathBuf| {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        path.is_dir()
            && path != present
            && name.len() > TIME
            && name.as_bytes()[..TIME].iter().all(|byte| b"0123456789-".contains(byte))
    };
    let mut all: Vec<PathBuf> =
        entries.filter_map(Result::ok).map(|entry| entry.path()).filter(is_run).collect();
    all.sort();
    let old = (all.len() + 1).saturating_sub(KEPT);
    for run in &all[..old] {
        // The next run tries again to remove it.
        let _ = fs::remove_dir_all(run);
    }
}

/// `YYYY-MM-DDTHH:MM:SSZ`.
pub(in crate::commands) fn timestamp(time: OffsetDateTime) -> String {
    formatted(time, format_description!("[year]-[month]-[day]T[hour]:[minute]:[second]Z"))
}

fn formatted(time: OffsetDateTime, format: &[BorrowedFormatItem<'_>]) -> String {
    time.format(format).expect("the formats here ask for nothing that a UTC time lacks")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_runs_are_kept_and_nothing_else_is_removed() {
        let directory = tempfile::tempdir().unwrap();
        let runs = directory.path();
        for number in 0..KEPT + 3 {
            fs::create_dir(runs.join(format!("20260102-0304{number:02}-create-cluster"))).unwrap();
        }
        fs::create_dir(runs.join("saved by hand")).unwrap();
        fs::write(runs.join("20260102-000000"), "no directory").unwrap();
        prune(runs, &runs.join(format!("20260102-0304{}-create-cluster", KEPT + 2)));
        let left = fs::read_dir(runs).unwrap().count();
        assert_eq!(left, KEPT + 2);
        assert!(!runs.join("20260102-030402-create-cluster").exists());
        assert!(runs.join("20260102-030403-create-cluster").exists() && runs.join("saved by hand").exists());
    }

    #[test]
    fn a_run_stays_while_it_runs_also_when_the_clock_was_set_back() {
        let directory = tempfile::tempdir().unwrap();
        let runs = directory.path().join("runs");
        for number in 0..KEPT {
            create_directory(&runs, &format!("20260102-0304{number:02}-create-cluster")).unwrap();
        }
        let present = create_directory(&runs, "20000101-000000-create-cluster").unwrap();
        prune(&runs, &present);
        assert!(present.exists() && fs::read_dir(&runs).unwrap().count() == KEPT);
    }

    #[test]
    fn two_runs_of_one_second_have_two_directories() {
        let directory = tempfile::tempdir().unwrap();
        let runs = directory.path().join("runs");
        let names: Vec<PathBuf> = (0..3).map(|_| create_directory(&runs, "a").unwrap()).collect();
        assert_eq!(names, [runs.join("a"), runs.join("a-2"), runs.join("a-3")]);
    }
}
