//! What a run leaves on this machine: a directory with journal, log and, with `--debug`, the trace.

use std::path::{Path, PathBuf};

use kk_engine::{Journal, Listener, LogFile, Redactor, create_run_directory};
use time::{OffsetDateTime, format_description::BorrowedFormatItem, macros::format_description};

use crate::error::Error;

use super::{lock::Lock, trace::Trace};

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
    /// Takes the cluster's lock and makes the directory of the run.
    pub(super) fn create(
        cluster: &Path,
        command: &str,
        time: OffsetDateTime,
        debug: bool,
        redactor: &Redactor,
    ) -> Result<Self, Error> {
        let lock = Lock::take(cluster)?;
        let time = formatted(time, format_description!("[year][month][day]-[hour][minute][second]"));
        let directory = cluster.join("runs").join(format!("{time}-{}", command.replace(' ', "-")));
        let failed = |error| Error::workdir(&directory, error);
        create_run_directory(&directory).map_err(failed)?;
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

/// `YYYY-MM-DDTHH:MM:SSZ`.
pub(super) fn timestamp(time: OffsetDateTime) -> String {
    formatted(time, format_description!("[year]-[month]-[day]T[hour]:[minute]:[second]Z"))
}

fn formatted(time: OffsetDateTime, format: &[BorrowedFormatItem<'_>]) -> String {
    time.format(format).expect("the formats here ask for nothing that a UTC time lacks")
}
