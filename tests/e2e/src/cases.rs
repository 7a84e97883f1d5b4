//! Scenarios of many cases: each is run, reported in a line, and counted; a failed case does not end the others.

use anyhow::{Result, ensure};

use crate::context::Context;
use crate::report;

/// Names of cases, by commas: only these.
const ONLY: &str = "KK_E2E_CASES";

/// A case of a scenario.
pub(crate) trait Case {
    /// The name in reports.
    fn name(&self) -> &str;
}

/// Runs `one` with each case. After a failed case, the next one gets a new shared cluster.
pub(crate) fn each<C: Case>(
    ctx: &Context<'_>,
    cases: &[C],
    mut one: impl FnMut(&C) -> Result<()>,
) -> Result<()> {
    let only = std::env::var(ONLY).unwrap_or_default();
    let wanted = |name: &str| only.is_empty() || only.split(',').any(|other| other == name);
    let mut failures = Vec::new();
    for case in cases.iter().filter(|case| wanted(case.name())) {
        let result = one(case);
        report::line(&format!("  {} {}", if result.is_ok() { "ok    " } else { "FAILED" }, case.name()));
        if let Err(error) = result {
            let cause = format!("{error:#}");
            report::line(&format!("    {}", cause.lines().next().unwrap_or_default()));
            failures.push(format!("{}: {cause}", case.name()));
            ctx.shared.replace(None);
        }
    }
    ensure!(failures.is_empty(), "{} of {} cases:\n{}", failures.len(), cases.len(), failures.join("\n"));
    Ok(())
}
