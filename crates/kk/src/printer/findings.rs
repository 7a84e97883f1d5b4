//! Formats the findings about the hosts before the first change: one table for all hosts.

use kk_engine::{Finding, Severity};

use super::{Paint, Table, text};

/// The table: errors first, then warnings, then adaptations; equal findings of several hosts share a row.
pub fn render(findings: &[Finding], paint: Paint, width: usize) -> String {
    let mut table = Table::new(["", "HOSTS", "FINDING", "WHAT TO DO"]);
    let same =
        |a: &Finding, b: &Finding| (a.severity, &a.message, &a.hint) == (b.severity, &b.message, &b.hint);
    let mut groups = text::fold(findings, host, same);
    groups.sort_by_key(|(first, _)| first.severity);
    for (finding, hosts) in groups {
        let severity = match finding.severity {
            Severity::Error => paint.red("error"),
            Severity::Warning => paint.yellow("warning"),
            Severity::Adapted => paint.cyan("adapted"),
        };
        table.row([severity, text::names(&hosts, 3), finding.message.clone(), finding.hint.clone()]);
    }
    table.render(width)
}

/// The name in the column of hosts: "all" for a finding about the cluster.
fn host(finding: &Finding) -> String {
    finding.host.clone().unwrap_or_else(|| "all".into())
}
