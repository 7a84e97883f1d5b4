//! The context of a scenario: the programs, its directory, its deadline, and the cluster that scenarios share.

use std::cell::{Cell, RefCell};
use std::fs;
use std::path::PathBuf;
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use kk_test_common::empty;

use crate::cluster::Cluster;
use crate::lab::Lab;
use crate::process::{Finished, Job, Running};

/// The programs under test, the lab they run in, and where runs leave what they wrote.
#[derive(Clone, Debug)]
pub(crate) struct Tools {
    pub(crate) kk: PathBuf,
    pub(crate) kk_lab: PathBuf,
    pub(crate) artefacts: PathBuf,
    pub(crate) lab: Lab,
}

impl Tools {
    /// The given paths, else the programs in the directory of this program. Errors: a program does not exist.
    pub(crate) fn find(
        kk: Option<PathBuf>,
        kk_lab: Option<PathBuf>,
        artefacts: Option<PathBuf>,
    ) -> Result<Self> {
        let own = std::env::current_exe().context("this program has no file")?;
        let directory = own.parent().context("a program lies in a directory")?;
        let beside = |given: Option<PathBuf>, name: &str| -> Result<PathBuf> {
            let path = given.unwrap_or_else(|| directory.join(name));
            fs::canonicalize(&path)
                .with_context(|| format!("{} is not there\nhint: `make build`", path.display()))
        };
        let artefacts = artefacts.unwrap_or_else(|| directory.join("../e2e"));
        fs::create_dir_all(&artefacts).with_context(|| format!("cannot create {}", artefacts.display()))?;
        Ok(Self {
            kk: beside(kk, "kk")?,
            kk_lab: beside(kk_lab, "kk-lab")?,
            artefacts: fs::canonicalize(artefacts)?,
            lab: Lab::FIRST,
        })
    }

    /// Directory of a scenario. No scenario's directory contains another one's.
    pub(crate) fn directory_of(&self, scenario: &str) -> PathBuf {
        self.artefacts.join(scenario.replace('/', "-"))
    }

    /// The same programs in another lab of this machine.
    pub(crate) fn in_lab(&self, number: u8) -> Self {
        Self { lab: Lab { number }, ..self.clone() }
    }

    /// Directory of the cluster that scenarios of this lab share.
    pub(crate) fn shared_cluster(&self) -> PathBuf {
        self.artefacts.join(format!("cluster-{}", self.lab.number))
    }

    /// Directory of the images that scenarios of this lab build.
    pub(crate) fn images(&self) -> PathBuf {
        self.artefacts.join(format!("image-{}", self.lab.number))
    }
}

/// One scenario's view of the world.
#[derive(Debug)]
pub(crate) struct Context<'a> {
    pub(crate) tools: &'a Tools,
    /// The scenario's own directory, empty at its start.
    pub(crate) dir: PathBuf,
    pub(crate) deadline: Instant,
    /// The cluster that `cluster::ensure` hands from one scenario to the next.
    pub(crate) shared: &'a RefCell<Option<Cluster>>,
    jobs: Cell<u32>,
}

impl<'a> Context<'a> {
    /// Empties the scenario's directory.
    pub(crate) fn new(
        tools: &'a Tools,
        name: &str,
        limit: Duration,
        shared: &'a RefCell<Option<Cluster>>,
    ) -> Result<Self> {
        let dir = tools.directory_of(name);
        empty(&dir)?;
        Ok(Self { tools, dir, deadline: Instant::now() + limit, shared, jobs: Cell::new(0) })
    }

    /// Starts a job; `label` names its output files.
    pub(crate) fn start(&self, label: &str, job: Job) -> Result<Running> {
        self.jobs.set(self.jobs.get() + 1);
        let directory = self.dir.join("commands");
        fs::create_dir_all(&directory)?;
        job.start(&directory.join(format!("{:03}-{label}", self.jobs.get())), self.deadline)
    }

    /// Runs a job to its end, whatever that is.
    pub(crate) fn run(&self, label: &str, job: Job) -> Result<Finished> {
        self.start(label, job)?.wait()
    }

    /// Waits until `look` finds something. Errors: it does not within `patience`; `what` says what was awaited.
    pub(crate) fn until<T>(
        &self,
        what: &str,
        patience: Duration,
        mut look: impl FnMut() -> Result<Option<T>>,
    ) -> Result<T> {
        let ends = self.deadline.min(Instant::now() + patience);
        loop {
            if let Some(found) = look()? {
                return Ok(found);
            }
            if Instant::now() > ends {
                bail!("{what}: not within {} s", patience.as_secs());
            }
            sleep(Duration::from_millis(200));
        }
    }
}
