//! Cases of the files that hooks write: object patches and metrics.

use serde::Deserialize;
use shell_operator::metrics::{self, Registry};
use shell_operator::patch;

use crate::value::{refused, same};

/// A patch file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Patches {
    text: String,
    /// `Operation namespace/Kind/name` of each.
    operations: Option<Vec<String>>,
    /// The file is refused as a whole; the error has all of these.
    refused: Option<Vec<String>>,
}

impl Patches {
    pub(crate) fn run(&self) -> Result<(), String> {
        let result = patch::parse(&self.text);
        match (&self.operations, &self.refused) {
            (Some(expected), None) => {
                let show = |operation: &patch::Operation| {
                    let patch::Operation { action, namespace, kind, name, .. } = operation;
                    format!("{} {namespace}/{kind}/{name}", action.name())
                };
                same(&result?.iter().map(show).collect::<Vec<_>>(), expected)
            }
            (None, Some(parts)) => refused(result, parts),
            _ => Err("patches have either operations or refused".to_owned()),
        }
    }
}

/// Reports of runs, one after the other.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Metrics {
    /// Texts of the files, of a hook `h`.
    reports: Vec<String>,
    /// The page that scrapers get afterwards.
    page: Option<String>,
    /// The last report is refused; the error has all of these.
    refused: Option<Vec<String>>,
}

impl Metrics {
    pub(crate) fn run(&self) -> Result<(), String> {
        let registry = Registry::default();
        let (last, earlier) = self.reports.split_last().ok_or("there is no report")?;
        for report in earlier {
            report_to(&registry, report)?;
        }
        let result = report_to(&registry, last);
        if let Some(parts) = &self.refused {
            return refused(result, parts);
        }
        result?;
        match &self.page {
            None => Ok(()),
            Some(page) => same(registry.text().trim(), page.trim()),
        }
    }
}

fn report_to(registry: &Registry, report: &str) -> Result<(), String> {
    let problems = metrics::apply(registry, "h", &metrics::parse(report.as_bytes())?);
    if problems.is_empty() { Ok(()) } else { Err(problems.join("\n")) }
}
