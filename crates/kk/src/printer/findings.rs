//! What was noticed about the hosts before the first change: one table for all hosts.

use kk_cluster::{Finding, Severity};
use serde_json::json;

use super::{Paint, Table, text};

/// The table: errors first, then warnings, then what is adapted to; equal findings of several hosts in one row.
/// Empty when there are none.
pub fn render(findings: &[Finding], paint: Paint, width: usize) -> String {
    if findings.is_empty() {
        return String::new();
    }
    let mut table = Table::new(["", "HOSTS", "FINDING", "WHAT TO DO"]);
    let same = |a: &Finding, b: &Finding| (a.severity, &a.what, &a.hint) == (b.severity, &b.what, &b.hint);
    let mut groups = text::fold(findings, host, same);
    groups.sort_by_key(|(first, _)| first.severity);
    for (finding, hosts) in groups {
        let severity = match finding.severity {
            Severity::Error => paint.red("error"),
            Severity::Warning => paint.yellow("warning"),
            Severity::Adapted => paint.cyan("adapted"),
        };
        table.row([severity, text::names(&hosts, 3), finding.what.clone(), finding.hint.clone()]);
    }
    table.render(width)
}

/// The findings for programs: one JSON object a line.
pub fn json_lines(findings: &[Finding]) -> String {
    let line = |finding: &Finding| {
        let Finding { severity, host, what, hint } = finding;
        let object =
            json!({ "event": "finding", "severity": severity, "host": host, "what": what, "hint": hint });
        format!("{object}\n")
    };
    findings.iter().map(line).collect()
}

/// How many findings are errors; the same on several hosts counts for each.
pub fn errors(findings: &[Finding]) -> usize {
    findings.iter().filter(|finding| finding.severity == Severity::Error).count()
}

/// The name in the column of hosts; what concerns the cluster has none.
fn host(finding: &Finding) -> &str {
    finding.host.as_deref().unwrap_or("all")
}
