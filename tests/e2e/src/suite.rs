//! Running scenarios one after the other, each with its own limit, and the lines that others read.

use std::cell::RefCell;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant, SystemTime};

use anyhow::{Result, bail, ensure};

use crate::busy;
use crate::context::{Context, Tools};
use crate::report::{self, line};
use crate::scenarios::ALL;

/// For Kubernetes and all other programs of the lab.
const BUILD_LIMIT: Duration = Duration::from_mins(45);

/// One scenario.
pub(crate) struct Scenario {
    /// What `--only` takes.
    pub(crate) name: &'static str,
    /// What it shows, in a line.
    pub(crate) about: &'static str,
    /// How long it may take.
    pub(crate) limit: Duration,
    /// Whether it runs when none is named.
    pub(crate) in_ci: bool,
    pub(crate) run: fn(&Context<'_>) -> Result<()>,
}

/// Why a scenario did not run: it needs what is not here. That is neither a success nor a failure.
#[derive(Debug)]
pub(crate) struct NotRun(pub(crate) String);

impl fmt::Display for NotRun {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl std::error::Error for NotRun {}

/// How the scenarios run.
#[derive(Clone, Copy, Debug, clap::Args)]
pub(crate) struct Options {
    /// Minutes for all scenarios together; one that has not ended by then has failed
    #[arg(long, value_name = "MINUTES", default_value_t = 90)]
    within: u64,
    /// Run the scenarios this many times, one round after the other
    #[arg(long, value_name = "ROUNDS", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..))]
    repeat: u16,
    /// Keep all processors busy with other work meanwhile
    #[arg(long)]
    busy: bool,
}

/// Prints name and meaning of each.
pub(crate) fn list() {
    for scenario in ALL {
        let only = if scenario.in_ci { "" } else { " (only when named)" };
        line(&format!("{:<18} {}{only}", scenario.name, scenario.about));
    }
}

/// Runs those named, or those of CI, and tells whether all went well. Errors: there is no scenario of that name; the
/// programs of the lab cannot be built.
pub(crate) fn run(tools: &Tools, only: &[String], options: Options) -> Result<bool> {
    let within = Duration::from_mins(options.within);
    let once = choose(only)?;
    let chosen = once.repeat(usize::from(options.repeat));
    let ends = Instant::now() + within;
    let shared = RefCell::new(None);
    let prepared = Context::new(tools, "prepare", within, &shared)?;
    prepare(&prepared)?;
    // Ended when dropped.
    let _busy = if options.busy { busy::begin(&prepared)? } else { Vec::new() };
    let (mut failed, mut not_run) = (0, 0);
    for (number, scenario) in chosen.iter().enumerate() {
        if options.repeat > 1 && number % once.len() == 0 {
            line(&format!("--- round {} of {}", number / once.len() + 1, options.repeat));
        }
        line(&format!("--- {}: {}", scenario.name, scenario.about));
        let (begun, since) = (Instant::now(), SystemTime::now());
        let limit = scenario.limit.min(ends.saturating_duration_since(begun));
        let result = Context::new(tools, scenario.name, limit, &shared).and_then(|ctx| {
            if limit.is_zero() {
                bail!("not begun: the time for all scenarios is over ({} min)", options.within);
            }
            guarded(|| (scenario.run)(&ctx)).inspect_err(|error| {
                if !error.is::<NotRun>() {
                    explain(&ctx, error, since);
                }
            })
        });
        let seconds = begun.elapsed().as_secs();
        if let Some(why) = result.as_ref().err().filter(|error| error.is::<NotRun>()) {
            not_run += 1;
            line(&format!("E2E {} not run: {why}", scenario.name));
        } else if let Err(error) = result {
            failed += 1;
            // Whatever it left, the next one begins with fresh hosts.
            shared.replace(None);
            let cause = format!("{error:#}");
            line(&format!("  cause: {}", cause.lines().next().unwrap_or_default()));
            line(&format!("E2E {} FAILED {seconds}", scenario.name));
        } else {
            line(&format!("E2E {} ok {seconds}", scenario.name));
        }
    }
    line(&summary(chosen.len(), failed, not_run));
    Ok(failed == 0 && not_run == 0)
}

fn summary(chosen: usize, failed: usize, not_run: usize) -> String {
    let text = format!("{} passed, {failed} failed", chosen - failed - not_run);
    if not_run == 0 { text } else { format!("{text}, {not_run} not run") }
}

/// A panic is one scenario's failure, not the end of the others.
fn guarded(run: impl FnOnce() -> Result<()>) -> Result<()> {
    catch_unwind(AssertUnwindSafe(run))
        .unwrap_or_else(|_| bail!("the scenario panicked; the reason stands above"))
}

/// What takes long the first time is no scenario's time.
fn prepare(ctx: &Context<'_>) -> Result<()> {
    line("--- building what the lab needs (the first time about 15 minutes)");
    ctx.run("mirror", ctx.lab_job(&["mirror", "build"]).limit(BUILD_LIMIT))?.ok()?;
    Ok(())
}

fn choose(only: &[String]) -> Result<Vec<&'static Scenario>> {
    let chosen: Vec<&Scenario> = ALL
        .iter()
        .filter(|scenario| match only {
            [] => scenario.in_ci,
            names => names.iter().any(|name| name == scenario.name),
        })
        .collect();
    let unknown: Vec<&str> = only
        .iter()
        .map(String::as_str)
        .filter(|name| ALL.iter().all(|scenario| scenario.name != *name))
        .collect();
    ensure!(unknown.is_empty(), "no scenario is called {}\nhint: `kk-e2e --list`", unknown.join(", "));
    Ok(chosen)
}

fn explain(ctx: &Context<'_>, error: &anyhow::Error, since: SystemTime) {
    line(&format!("{error:#}"));
    // The shared cluster's logs lie beside the scenarios' own directories.
    let cluster = ctx.tools.artefacts.join("cluster");
    if let Some(log) = report::last_log(&ctx.dir, since).or_else(|| report::last_log(&cluster, since)) {
        line(log.trim_end());
    }
    line(&format!("  all it wrote: {}", ctx.dir.display()));
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn a_panic_is_a_failure_of_one_scenario() {
        assert!(guarded(|| panic!("as this test wants it")).unwrap_err().to_string().contains("panicked"));
        assert!(guarded(|| Ok(())).is_ok());
    }

    #[test]
    fn what_did_not_run_has_not_passed() {
        assert_eq!(summary(5, 1, 0), "4 passed, 1 failed");
        assert_eq!(summary(5, 1, 2), "2 passed, 1 failed, 2 not run");
        let missing = guarded(|| Err(NotRun("set X".to_owned()).into())).unwrap_err();
        assert!(missing.is::<NotRun>() && missing.to_string() == "set X");
    }

    #[test]
    fn names_are_unique_and_unknown_ones_refused() {
        let names: BTreeSet<&str> = ALL.iter().map(|scenario| scenario.name).collect();
        assert_eq!(names.len(), ALL.len());
        assert_eq!(choose(&[]).unwrap().len(), ALL.iter().filter(|scenario| scenario.in_ci).count());
        assert_eq!(choose(&["again".into()]).unwrap().len(), 1);
        assert!(choose(&["agian".into()]).err().unwrap().to_string().contains("agian"));
    }
}
