//! Formats the summary of a successful run.

use kk_engine::Summary;

use super::{Paint, Table, text};

/// How the run of a summary ended.
#[derive(Clone, Copy, Debug, Default)]
pub struct End<'a> {
    /// Operations that changed something.
    pub changed: usize,
    /// Time of the whole run, in milliseconds.
    pub took_ms: u64,
    /// The directory of the run.
    pub log: Option<&'a str>,
    /// Modules that changed something, and their time in milliseconds.
    pub modules: &'a [(String, u64)],
}

/// All lines.
pub fn render(summary: &Summary, end: &End<'_>, paint: Paint, width: usize) -> String {
    let what = match end.changed {
        0 => "nothing had to be done".into(),
        changed => text::count(changed, "change"),
    };
    let took = text::duration(end.took_ms);
    let mut out =
        format!("\n{} {}\n", paint.green(&summary.message), paint.dim(&format!("({what}, {took})")));
    if !summary.nodes.is_empty() {
        let mut table = Table::new(["NODE", "ADDRESS", "ROLES"]);
        for node in &summary.nodes {
            table.row([node.name.clone(), node.address.clone(), node.roles.join(", ")]);
        }
        out += &format!("\n{}", text::indent(&table.render(width.saturating_sub(2)), 2));
    }
    let mut facts: Vec<(&str, String)> =
        summary.outputs.iter().map(|output| (output.name.as_str(), output.value.clone())).collect();
    facts.extend(end.log.map(|log| ("log", log.to_owned())));
    if end.changed > 0 && !end.modules.is_empty() {
        facts.push(("time", times(end.modules)));
    }
    out += &named(&facts, paint);
    if let Some(next) = &summary.next {
        out += &format!("\n{next}\n");
    }
    out
}

/// `binaries 8.2s, etcd 3.1s`: the longest first, so that the slow module is seen. The times overlap, so their sum has no
/// meaning.
fn times(modules: &[(String, u64)]) -> String {
    let mut modules: Vec<&(String, u64)> = modules.iter().collect();
    modules.sort_by_key(|(_, took)| std::cmp::Reverse(*took));
    let parts: Vec<String> =
        modules.iter().map(|(name, took)| format!("{name} {}", text::duration(*took))).collect();
    parts.join(", ")
}

fn named(facts: &[(&str, String)], paint: Paint) -> String {
    if facts.is_empty() {
        return String::new();
    }
    let longest = facts.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    let line = |(name, value): &(&str, String)| {
        format!("  {}{}  {value}\n", paint.bold(name), " ".repeat(longest - name.len()))
    };
    format!("\n{}", facts.iter().map(line).collect::<String>())
}
