//! What a person wants to know after a run that went well.

use super::{Paint, Table, text};

/// The end of a run.
#[derive(Clone, Debug, Default)]
pub struct Summary {
    /// "cluster prod is ready", "cluster prod is removed".
    pub headline: String,
    /// Operations that changed something.
    pub changed: usize,
    /// Time of the whole run, in milliseconds.
    pub took_ms: u64,
    /// Node name, address, roles.
    pub nodes: Vec<[String; 3]>,
    /// Named facts in order: endpoint, kubeconfig, log.
    pub facts: Vec<(String, String)>,
    /// Modules that did something, and their time in milliseconds.
    pub modules: Vec<(String, u64)>,
    /// What to do next.
    pub next: Option<String>,
}

impl Summary {
    /// All lines.
    pub fn render(&self, paint: Paint, width: usize) -> String {
        let what = match self.changed {
            0 => "nothing had to be done".into(),
            changed => text::count(changed, "change"),
        };
        let took = text::duration(self.took_ms);
        let mut out =
            format!("\n{} {}\n", paint.green(&self.headline), paint.dim(&format!("({what}, {took})")));
        if !self.nodes.is_empty() {
            let mut table = Table::new(["NODE", "ADDRESS", "ROLES"]);
            for node in &self.nodes {
                table.row(node.clone());
            }
            out += &format!("\n{}", text::indent(&table.render(width.saturating_sub(2)), 2));
        }
        let mut facts = self.facts.clone();
        if self.changed > 0 && !self.modules.is_empty() {
            facts.push(("time".into(), times(&self.modules)));
        }
        out += &named(&facts, paint);
        if let Some(next) = &self.next {
            out += &format!("\n{next}\n");
        }
        out
    }
}

/// `binaries 8.2s, etcd 3.1s`: the longest first, so that the slow one is seen. They overlap; the sum says nothing.
fn times(modules: &[(String, u64)]) -> String {
    let mut modules: Vec<&(String, u64)> = modules.iter().collect();
    modules.sort_by_key(|(_, took)| std::cmp::Reverse(*took));
    let parts: Vec<String> =
        modules.iter().map(|(name, took)| format!("{name} {}", text::duration(*took))).collect();
    parts.join(", ")
}

fn named(facts: &[(String, String)], paint: Paint) -> String {
    if facts.is_empty() {
        return String::new();
    }
    let longest = facts.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    let line = |(name, value): &(String, String)| {
        format!("  {}{}  {value}\n", paint.bold(name), " ".repeat(longest - name.len()))
    };
    format!("\n{}", facts.iter().map(line).collect::<String>())
}
