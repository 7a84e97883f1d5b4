//! Selects the scenarios to run: by name, by group, all, or those that a change may affect.

use std::collections::BTreeSet;
use std::fmt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Context as _, Result, ensure};

use crate::scenarios::GROUPS;
use crate::suite::{Group, Scenario};

/// The name by which `--group` selects the group that is due on the current day.
const TODAY: &str = "today";
const SECONDS_OF_A_DAY: u64 = 86_400;
/// Directories in which a change may affect any scenario. Documentation is in none of them.
const PRODUCT: [&str; 7] =
    ["crates/", "templates/", "artifacts/", "deploy/", "tests/e2e/", "tests/lab/", "Cargo.lock"];

/// When a group runs in CI.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum When {
    /// In every run.
    Always,
    /// One of these groups in each run, another one each day.
    InTurn,
    /// Never: its scenarios take too long for CI.
    OnRequest,
}

impl fmt::Display for When {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Always => "each CI run",
            Self::InTurn => "CI in turn",
            Self::OnRequest => "on request",
        })
    }
}

/// Which scenarios run. Without any of these it is the group `core`.
#[derive(Clone, Debug, Default, clap::Args)]
pub(crate) struct Selection {
    /// These groups (names by --list), or `today`: the one whose turn in CI it is
    #[arg(long, value_delimiter = ',', value_name = "GROUPS")]
    group: Vec<String>,
    /// All scenarios
    #[arg(long, conflicts_with_all = ["group", "affected"])]
    all: bool,
    /// Those that cover a file that differs from this git revision, committed or not
    #[arg(long, value_name = "REVISION", conflicts_with = "group")]
    affected: Option<String>,
    #[arg(skip)]
    only: Vec<String>,
}

/// Scenarios of a chain that were chosen, in its order.
pub(crate) type ChosenChain = Vec<&'static Scenario>;

impl Selection {
    /// The same with names of scenarios, which replace every other choice.
    pub(crate) fn only(self, only: Vec<String>) -> Self {
        Self { only, ..self }
    }

    /// The chosen scenarios, as chains. Errors: a name is unknown; git does not answer.
    pub(crate) fn chains(&self) -> Result<Vec<ChosenChain>> {
        if !self.only.is_empty() {
            let every: Vec<&Scenario> = GROUPS.iter().flat_map(Group::scenarios).collect();
            let unknown: Vec<&String> = self
                .only
                .iter()
                .filter(|name| !every.iter().any(|scenario| is_called(scenario, name)))
                .collect();
            ensure!(unknown.is_empty(), "no scenario is called {unknown:?}\nhint: `kk-e2e --list`");
            return Ok(chosen(|_, scenario| self.only.iter().any(|name| is_called(scenario, name))));
        }
        if self.all {
            return Ok(chosen(|_, _| true));
        }
        if let Some(revision) = &self.affected {
            let files = changed_files(&checkout(), revision)?;
            return Ok(affected(&files));
        }
        let today = today(SystemTime::now());
        let names: Vec<&str> = match &self.group[..] {
            [] => vec![GROUPS[0].name],
            groups => groups.iter().map(|name| if name == TODAY { today } else { name.as_str() }).collect(),
        };
        let unknown: Vec<&str> =
            names.iter().copied().filter(|name| GROUPS.iter().all(|group| group.name != *name)).collect();
        ensure!(unknown.is_empty(), "no group is called {}\nhint: `kk-e2e --list`", unknown.join(", "));
        Ok(chosen(|group, _| names.contains(&group.name)))
    }
}

fn chosen(is_chosen: impl Fn(&Group, &Scenario) -> bool) -> Vec<ChosenChain> {
    let chains = GROUPS.iter().flat_map(|group| group.chains.iter().map(move |chain| (group, chain)));
    let chains =
        chains.map(|(group, chain)| chain.iter().filter(|scenario| is_chosen(group, scenario)).collect());
    chains.filter(|chain: &ChosenChain| !chain.is_empty()).collect()
}

/// `damage` is the name of `damage/1` and `damage/2`, too.
fn is_called(scenario: &Scenario, name: &str) -> bool {
    scenario.name == name || scenario.name.split_once('/').is_some_and(|(whole, _)| whole == name)
}

/// The group whose turn it is: another one each day (UTC).
fn today(now: SystemTime) -> &'static str {
    let names: Vec<&str> =
        GROUPS.iter().filter(|group| group.when == When::InTurn).map(|group| group.name).collect();
    let days = now.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs() / SECONDS_OF_A_DAY);
    names[usize::try_from(days).unwrap_or_default() % names.len()]
}

/// Scenarios that cover one of the files. A file of the product that no scenario covers by name affects the groups that
/// always run.
fn affected(files: &[String]) -> Vec<ChosenChain> {
    let covers = |scenario: &Scenario, file: &str| scenario.covers.iter().any(|path| file.starts_with(path));
    let is_general = |file: &&String| {
        PRODUCT.iter().any(|path| file.starts_with(path))
            && !GROUPS.iter().flat_map(Group::scenarios).any(|scenario| covers(scenario, file))
    };
    let general = files.iter().find(is_general).is_some();
    chosen(|group, scenario| {
        (general && group.when == When::Always) || files.iter().any(|file| covers(scenario, file))
    })
}

/// Paths in the checkout that differ from the revision, or that git does not know yet.
fn changed_files(checkout: &Path, revision: &str) -> Result<Vec<String>> {
    let git = |words: &[&str]| -> Result<String> {
        let done =
            Command::new("git").current_dir(checkout).args(words).output().context("cannot start git")?;
        let said = String::from_utf8_lossy(&done.stderr);
        ensure!(done.status.success(), "git {}: {}", words.join(" "), said.trim());
        Ok(String::from_utf8_lossy(&done.stdout).into_owned())
    };
    let differ = git(&["diff", "--name-only", revision, "--"])?;
    let unknown = git(&["ls-files", "--others", "--exclude-standard"])?;
    let files: BTreeSet<String> = differ.lines().chain(unknown.lines()).map(str::to_owned).collect();
    Ok(files.into_iter().collect())
}

fn checkout() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn names(selection: &Selection) -> Vec<&'static str> {
        selection.chains().unwrap().iter().flatten().map(|scenario| scenario.name).collect()
    }

    fn every() -> impl Iterator<Item = &'static Scenario> {
        GROUPS.iter().flat_map(Group::scenarios)
    }

    #[test]
    fn names_are_unique_and_unknown_ones_refused() {
        let all: BTreeSet<&str> = every().map(|scenario| scenario.name).collect();
        assert_eq!(all.len(), every().count());
        let groups: BTreeSet<&str> = GROUPS.iter().map(|group| group.name).collect();
        assert_eq!(groups.len(), GROUPS.len());
        let only = |name: &str| Selection::default().only(vec![name.to_owned()]);
        assert_eq!(names(&only("again")), ["again"]);
        assert_eq!(names(&only("damage")), ["damage/1", "damage/2"]);
        assert!(only("agian").chains().err().unwrap().to_string().contains("agian"));
        let group = Selection { group: vec!["cores".into()], ..Selection::default() };
        assert!(group.chains().err().unwrap().to_string().contains("no group is called cores"));
    }

    #[test]
    fn the_core_runs_unless_something_else_is_asked_for() {
        let core = names(&Selection::default());
        assert_eq!(core, GROUPS[0].scenarios().map(|scenario| scenario.name).collect::<Vec<_>>());
        assert_eq!(names(&Selection { all: true, ..Selection::default() }).len(), every().count());
        let both = Selection { group: vec!["core".into(), TODAY.into()], ..Selection::default() };
        assert!(names(&both).len() > core.len());
    }

    #[test]
    fn each_group_has_its_day() {
        let count = GROUPS.iter().filter(|group| group.when == When::InTurn).count();
        let day = |day: usize| today(UNIX_EPOCH + Duration::from_secs(86_400 * u64::try_from(day).unwrap()));
        let seen: BTreeSet<&str> = (20_000..20_000 + count).map(day).collect();
        assert_eq!(seen.len(), count);
    }

    #[test]
    fn a_change_affects_the_scenarios_that_cover_it() {
        let affected = |file: &str| -> Vec<&str> {
            affected(&[file.to_owned()]).iter().flatten().map(|scenario| scenario.name).collect()
        };
        assert!(affected("docs/cli.md").is_empty());
        let restore = affected("crates/kk-cluster/src/capabilities/etcd_restore/mod.rs");
        assert!(restore.contains(&"restore") && !restore.contains(&"kubesphere"), "{restore:?}");
        assert_eq!(affected("crates/kk-engine/src/lib.sh"), names(&Selection::default()));
    }

    #[test]
    fn what_scenarios_cover_exists_and_each_capability_is_covered() {
        for scenario in every() {
            for path in scenario.covers {
                assert!(
                    checkout().join(path).exists(),
                    "{} covers {path}, which does not exist",
                    scenario.name
                );
            }
        }
        let capabilities = checkout().join("crates/kk-cluster/src/capabilities");
        for entry in std::fs::read_dir(capabilities).unwrap().flatten().filter(|entry| entry.path().is_dir())
        {
            let path = format!("crates/kk-cluster/src/capabilities/{}/", entry.file_name().display());
            let covered =
                every().any(|scenario| scenario.covers.iter().any(|covered| path.starts_with(covered)));
            assert!(covered, "no scenario covers {path}");
        }
    }

    #[test]
    fn groups_of_ci_take_as_long_as_ci_has_for_them() {
        for group in GROUPS {
            let longest: Option<u64> =
                group.chains.iter().map(|chain| chain.iter().map(|scenario| scenario.usual).sum()).max();
            // On two labs.
            let seconds: u64 = longest.unwrap_or(0).max(group.usual() / 2);
            let most = match group.when {
                When::Always => 18 * 60,
                // `rotate-ca` alone takes ten and a half.
                When::InTurn => 11 * 60,
                When::OnRequest => u64::MAX,
            };
            assert!(seconds <= most, "{}: {seconds} s of {most} s", group.name);
        }
    }
}
