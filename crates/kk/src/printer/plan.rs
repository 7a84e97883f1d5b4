//! The plan: what would be done, by module, task and host.

use std::collections::BTreeSet;

use kk_engine::PlannedTask;

use super::{Paint, text};

/// The plan for people. Hosts with the same changes share a line.
pub fn render(tasks: &[PlannedTask], paint: Paint) -> String {
    if tasks.is_empty() {
        return "nothing to do\n".into();
    }
    let mut out = String::new();
    for module in tasks.chunk_by(|a, b| a.module == b.module) {
        out += &format!("{}\n", paint.bold(&module[0].module));
        for task in module.chunk_by(|a, b| a.task == b.task) {
            out += &format!("  {}\n", task[0].title);
            for (first, hosts) in text::fold(task, |task| task.host.clone(), |a, b| a.changes == b.changes) {
                out += &changes(&hosts, &first.changes);
            }
        }
    }
    format!("{out}\n{}\n", total(tasks))
}

fn changes(hosts: &[String], lines: &[String]) -> String {
    let hosts = text::names(hosts, 8);
    match lines {
        [line] => format!("    {hosts}: {line}\n"),
        lines => format!("    {hosts}:\n{}", text::indent(&lines.join("\n"), 6)),
    }
}

/// `12 changes on 3 hosts`.
pub fn total(tasks: &[PlannedTask]) -> String {
    let changes = tasks.iter().map(|task| task.changes.len()).sum();
    let hosts: BTreeSet<&str> = tasks.iter().map(|task| task.host.as_str()).collect();
    format!("{} on {}", text::count(changes, "change"), text::count(hosts.len(), "host"))
}
