//! Runs scenarios: which ones, in which lab, each with its own limit, and the lines that other programs read.

use std::cell::RefCell;
use std::collections::{BTreeSet, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant, SystemTime};
use std::{fmt, fs};

use anyhow::{Result, bail, ensure};

use crate::busy;
use crate::cluster::Cluster;
use crate::context::{Context, Tools};
use crate::report::{self, line};
use crate::scenarios::GROUPS;
use crate::selection::{ChosenChain, Selection, When};

/// For Kubernetes and all other programs of the lab.
const BUILD_LIMIT: Duration = Duration::from_hours(1);

/// One scenario.
#[derive(Clone, Copy)]
pub(crate) struct Scenario {
    /// The name for `--only`.
    pub(crate) name: &'static str,
    /// The behaviour that it shows, in a line.
    pub(crate) about: &'static str,
    /// Seconds that it takes on two cores while another lab works: measured, or estimated before the first measurement.
    pub(crate) usual: u64,
    /// How long it may take.
    pub(crate) limit: Duration,
    /// Content of the mirror in addition to its defaults: arguments of `kk-lab mirror build`.
    pub(crate) needs: &'static [&'static str],
    /// Files and directories of the checkout whose changes it can notice, in addition to those that every scenario covers.
    pub(crate) covers: &'static [&'static str],
    pub(crate) run: fn(&Context<'_>) -> Result<()>,
}

impl Scenario {
    /// A scenario that needs no more than the mirror's defaults.
    pub(crate) const fn new(
        name: &'static str,
        about: &'static str,
        usual: u64,
        limit_minutes: u64,
        run: fn(&Context<'_>) -> Result<()>,
    ) -> Self {
        let limit = Duration::from_mins(limit_minutes);
        Self { name, about, usual, limit, needs: &[], covers: &[], run }
    }

    pub(crate) const fn needs(self, needs: &'static [&'static str]) -> Self {
        Self { needs, ..self }
    }

    pub(crate) const fn covers(self, covers: &'static [&'static str]) -> Self {
        Self { covers, ..self }
    }
}

/// Scenarios that one lab runs in this order. They hand a cluster to each other (`cluster::ensure`).
pub(crate) type Chain = &'static [Scenario];

/// Scenarios of one subject.
pub(crate) struct Group {
    pub(crate) name: &'static str,
    pub(crate) when: When,
    /// They run in any order, each in any lab.
    pub(crate) chains: &'static [Chain],
}

impl Group {
    pub(crate) fn scenarios(&self) -> impl Iterator<Item = &'static Scenario> {
        self.chains.iter().copied().flatten()
    }

    /// Seconds of one lab.
    pub(crate) fn usual(&self) -> u64 {
        self.scenarios().map(|scenario| scenario.usual).sum()
    }
}

/// Why a scenario did not run: it needs something that is missing here. That is neither a success nor a failure.
#[derive(Debug)]
pub(crate) struct NotRun(pub(crate) String);

impl fmt::Display for NotRun {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl std::error::Error for NotRun {}

/// The directory that an environment variable names, absolute. Errors: the variable is not set, so the scenario cannot run; or it
/// names no directory.
pub(crate) fn given(variable: &str, what: &str) -> Result<PathBuf> {
    let missing = || NotRun(format!("set {variable} to {what}"));
    let path =
        PathBuf::from(std::env::var_os(variable).filter(|value| !value.is_empty()).ok_or_else(missing)?);
    ensure!(path.is_dir(), "{variable} is {}, which is no directory", path.display());
    Ok(fs::canonicalize(path)?)
}

/// How the scenarios run.
#[derive(Clone, Copy, Debug, clap::Args)]
pub(crate) struct Options {
    /// Labs that work at once; two cores carry two
    #[arg(long, value_name = "LABS", default_value_t = 1, value_parser = clap::value_parser!(u8).range(1..=4))]
    jobs: u8,
    /// Minutes for all scenarios together; one that has not ended by then has failed
    #[arg(long, value_name = "MINUTES", default_value_t = 240)]
    within: u64,
    /// Run the scenarios this many times; those that share a cluster in rounds, one after the other
    #[arg(long, value_name = "ROUNDS", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..))]
    repeat: u16,
    /// Keep all processors busy with other work meanwhile
    #[arg(long)]
    busy: bool,
}

/// Prints name and meaning of each.
pub(crate) fn list() {
    for group in GROUPS {
        line(&format!("{} ({}; {} min of one lab)", group.name, group.when, group.usual().div_ceil(60)));
        for scenario in group.scenarios() {
            line(&format!("  {:<18} {}", scenario.name, scenario.about));
        }
    }
}

/// Runs what was selected, and returns whether all went well. Errors: nothing has that name; the programs of the lab cannot
/// be built.
pub(crate) fn run(tools: &Tools, selection: &Selection, options: Options) -> Result<bool> {
    let within = Duration::from_mins(options.within);
    let ends = Instant::now() + within;
    let mut chains = selection.chains()?;
    let names: Vec<&str> = chains.iter().flatten().map(|scenario| scenario.name).collect();
    line(&format!("--- {} scenarios: {}", names.len(), names.join(", ")));
    for chain in &mut chains {
        *chain = chain.repeat(options.repeat.into());
    }
    let shared = RefCell::new(None);
    let prepared = Context::new(tools, "prepare", within, &shared)?;
    prepare(&prepared, &chains)?;
    // Ended when dropped.
    let _busy = if options.busy { busy::begin(&prepared)? } else { Vec::new() };
    let count: usize = chains.iter().map(Vec::len).sum();
    let labs = usize::from(options.jobs).min(chains.len());
    let queue = Mutex::new(by_length(chains));
    let next = || queue.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
    let lab = |number: u8| {
        let tools = tools.in_lab(number);
        let label = (labs > 1).then(|| format!("lab {number}"));
        report::set_label(label);
        let (mut tally, shared) = (Tally::default(), RefCell::new(None));
        while let Some(chain) = next() {
            shared.replace(None);
            for scenario in chain {
                tally.add(&one(&tools, scenario, &shared, ends));
            }
        }
        tally
    };
    let tally = thread::scope(|scope| {
        let labs: Vec<_> = (1..=u8::try_from(labs)?).map(|number| scope.spawn(move || lab(number))).collect();
        let tallies = labs
            .into_iter()
            .map(|lab| lab.join().map_err(|_| anyhow::anyhow!("a bug: a lab's thread panicked")));
        tallies.sum::<Result<Tally>>()
    })?;
    line(&summary(count, tally));
    Ok(tally == Tally::default())
}

/// The scenarios that did not pass.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Tally {
    failed: usize,
    not_run: usize,
}

impl Tally {
    fn add(&mut self, outcome: &Outcome) {
        match outcome {
            Outcome::Passed => {}
            Outcome::Failed => self.failed += 1,
            Outcome::NotRun => self.not_run += 1,
        }
    }
}

impl std::iter::Sum for Tally {
    fn sum<I: Iterator<Item = Self>>(all: I) -> Self {
        all.fold(Self::default(), |sum, one| Self {
            failed: sum.failed + one.failed,
            not_run: sum.not_run + one.not_run,
        })
    }
}

enum Outcome {
    Passed,
    Failed,
    NotRun,
}

/// Runs one scenario and prints how it ended.
fn one(tools: &Tools, scenario: &Scenario, shared: &RefCell<Option<Cluster>>, ends: Instant) -> Outcome {
    line(&format!("--- {}: {}", scenario.name, scenario.about));
    let (begun, since) = (Instant::now(), SystemTime::now());
    let limit = scenario.limit.min(ends.saturating_duration_since(begun));
    let result = Context::new(tools, scenario.name, limit, shared).and_then(|ctx| {
        if limit.is_zero() {
            bail!("not begun: the time for all scenarios is over");
        }
        guarded(|| (scenario.run)(&ctx)).inspect_err(|error| {
            if !error.is::<NotRun>() {
                explain(&ctx, error, since);
            }
        })
    });
    let seconds = begun.elapsed().as_secs();
    match result {
        Ok(()) => {
            // Without the downloads of passed scenarios, a run of all needs a tenth of the disk space.
            if let Err(error) = remove_large_files(&tools.directory_of(scenario.name)) {
                line(&format!("  cannot remove its downloads: {error:#}"));
            }
            report::result(&format!("E2E {} ok {seconds}", scenario.name));
            Outcome::Passed
        }
        Err(error) if error.is::<NotRun>() => {
            report::result(&format!("E2E {} not run: {error}", scenario.name));
            Outcome::NotRun
        }
        Err(error) => {
            // The next scenario begins with fresh hosts.
            shared.replace(None);
            let cause = format!("{error:#}");
            let cause = cause.lines().next().unwrap_or_default();
            report::result(&format!("  cause: {cause}\nE2E {} FAILED {seconds}", scenario.name));
            Outcome::Failed
        }
    }
}

/// Removes downloads, bundles and images below a directory. Logs and the output of commands are kept.
fn remove_large_files(directory: &Path) -> Result<()> {
    const LARGE: u64 = 1 << 20;
    const KEPT: [&str; 5] = ["log", "jsonl", "in", "out", "err"];
    let is_kept =
        |path: &Path| path.extension().is_some_and(|ending| KEPT.iter().any(|kept| ending == *kept));
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        let metadata = fs::symlink_metadata(&path)?;
        if metadata.is_dir() {
            remove_large_files(&path)?;
        } else if metadata.len() > LARGE && !is_kept(&path) {
            fs::remove_file(&path)?;
        }
    }
    Ok(())
}

/// The longest first, so that no lab has to run it alone at the end.
fn by_length(mut chains: Vec<ChosenChain>) -> VecDeque<ChosenChain> {
    let seconds = |chain: &ChosenChain| -> u64 { chain.iter().map(|scenario| scenario.usual).sum() };
    chains.sort_by_key(|chain| std::cmp::Reverse(seconds(chain)));
    chains.into()
}

fn summary(chosen: usize, tally: Tally) -> String {
    let Tally { failed, not_run } = tally;
    let text = format!("{} passed, {failed} failed", chosen - failed - not_run);
    if not_run == 0 { text } else { format!("{text}, {not_run} not run") }
}

/// A panic is one scenario's failure, not the end of the others.
fn guarded(run: impl FnOnce() -> Result<()>) -> Result<()> {
    catch_unwind(AssertUnwindSafe(run))
        .unwrap_or_else(|_| bail!("the scenario panicked; the reason stands above"))
}

/// Builds what the chosen scenarios need, before the clock of any of them starts.
fn prepare(ctx: &Context<'_>, chains: &[ChosenChain]) -> Result<()> {
    line("--- building what the lab needs (the first time about 20 minutes)");
    let words = [&["mirror", "build"][..], &needs(chains)].concat();
    ctx.run("mirror", ctx.lab_job(&words).limit(BUILD_LIMIT))?.ok()?;
    Ok(())
}

/// Arguments of `kk-lab mirror build`, each once. Without a Kubernetes version it builds the default one, so that is named
/// next to the others.
pub(crate) fn needs(chains: &[ChosenChain]) -> Vec<&'static str> {
    let pairs: BTreeSet<&[&str]> =
        chains.iter().flatten().flat_map(|scenario| scenario.needs.chunks(2)).collect();
    pairs.into_iter().flatten().copied().collect()
}

fn explain(ctx: &Context<'_>, error: &anyhow::Error, since: SystemTime) {
    line(&format!("{error:#}"));
    // The shared cluster's logs are next to the scenarios' own directories.
    let cluster = ctx.tools.shared_cluster();
    if let Some(log) = report::last_log(&ctx.dir, since).or_else(|| report::last_log(&cluster, since)) {
        line(log.trim_end());
    }
    line(&format!("  all it wrote: {}", ctx.dir.display()));
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn scenario(name: &'static str, usual: u64) -> Scenario {
        Scenario::new(name, "", usual, 1, |_| Ok(()))
    }

    static CHAINS: [Chain; 3] = [
        &[scenario("a", 10), scenario("b", 20).needs(&["--with", "registry"])],
        &[scenario("c", 40)],
        &[scenario("d", 5).needs(&["--kubernetes", "v1.0.0", "--with", "registry"])],
    ];

    fn all() -> Vec<ChosenChain> {
        CHAINS.iter().map(|chain| chain.iter().collect()).collect()
    }

    #[test]
    fn a_panic_is_a_failure_of_one_scenario() {
        assert!(guarded(|| panic!("as this test wants it")).unwrap_err().to_string().contains("panicked"));
        assert!(guarded(|| Ok(())).is_ok());
    }

    #[test]
    fn what_did_not_run_has_not_passed() {
        assert_eq!(summary(5, Tally { failed: 1, not_run: 0 }), "4 passed, 1 failed");
        assert_eq!(summary(5, Tally { failed: 1, not_run: 2 }), "2 passed, 1 failed, 2 not run");
        let missing = guarded(|| Err(NotRun("set X".to_owned()).into())).unwrap_err();
        assert!(missing.is::<NotRun>() && missing.to_string() == "set X");
    }

    #[test]
    fn only_large_files_that_are_no_logs_are_removed() {
        let directory = std::env::temp_dir().join(format!("kk-e2e-large-files-{}", std::process::id()));
        let files = directory.join("site/files");
        fs::create_dir_all(&files).unwrap();
        let kept = ["001-create.err", "001-create.out", "journal.jsonl", "kk.log"];
        let large = kept.iter().chain(&["kubelet"]).map(|name| (*name, 2 << 20));
        for (name, size) in large.chain([("cluster.yaml", 100)]) {
            fs::write(files.join(name), vec![0; size]).unwrap();
        }
        std::os::unix::fs::symlink("kubelet", files.join("link")).unwrap();
        remove_large_files(&directory).unwrap();
        let mut left: Vec<_> = fs::read_dir(&files)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        left.sort();
        let mut expected = [&kept[..], &["cluster.yaml", "link"]].concat();
        expected.sort_unstable();
        assert_eq!(left, expected);
        fs::remove_dir_all(&directory).unwrap();
    }

    #[test]
    fn long_chains_begin_first() {
        let names: Vec<&str> = by_length(all()).iter().flatten().map(|scenario| scenario.name).collect();
        assert_eq!(names, ["c", "a", "b", "d"]);
    }

    #[test]
    fn each_need_is_built_once() {
        assert_eq!(needs(&all()), ["--kubernetes", "v1.0.0", "--with", "registry"]);
    }
}
