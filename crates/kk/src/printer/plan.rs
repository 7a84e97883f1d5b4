//! Formats the plan: the pending changes, by module, task and host.

use std::collections::BTreeSet;

use kk_engine::{CONTROL, PlannedTask};

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

/// `12 changes on 3 hosts and this machine`. The control machine makes the downloads.
pub fn total(tasks: &[PlannedTask]) -> String {
    let changes = tasks.iter().map(|task| task.changes.len()).sum();
    let mut hosts: BTreeSet<&str> = tasks.iter().map(|task| task.host.as_str()).collect();
    let here = hosts.remove(CONTROL).then(|| "this machine".to_owned());
    let places: Vec<String> =
        (!hosts.is_empty()).then(|| text::count(hosts.len(), "host")).into_iter().chain(here).collect();
    format!("{} on {}", text::count(changes, "change"), places.join(" and "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_machine_that_runs_kk_is_none_of_the_hosts() {
        let task = |host: &str| PlannedTask {
            module: "module".into(),
            task: "task".into(),
            title: "Title".into(),
            host: host.into(),
            changes: vec!["change".into()],
        };
        for (hosts, wanted) in [
            (&["a", "b"][..], "2 changes on 2 hosts"),
            (&["a", CONTROL], "2 changes on 1 host and this machine"),
            (&[CONTROL], "1 change on this machine"),
        ] {
            let tasks: Vec<PlannedTask> = hosts.iter().map(|host| task(host)).collect();
            assert_eq!(total(&tasks), wanted);
        }
    }
}
