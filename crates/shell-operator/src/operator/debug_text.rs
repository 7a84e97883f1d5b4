//! The output of `queue list`, as text and as data.

use std::fmt::Write;

use serde_json::{Value, json};

use crate::config::MAIN_QUEUE;
use crate::queue::QueueDump;

/// All queues that have tasks, the empty ones if wanted, and the totals.
pub(super) fn summary(all: &[QueueDump], show_empty: bool) -> Value {
    let active: Vec<&QueueDump> = all.iter().filter(|queue| queue.tasks_count > 0).collect();
    let sums = Sums::of(all);
    let mut value = json!({ "active": active });
    if show_empty {
        let empty: Vec<&QueueDump> = all.iter().filter(|queue| queue.tasks_count == 0).collect();
        value["empty"] = json!(empty);
    }
    value["summary"] = json!({
        "mainQueueTasks": sums.main,
        "otherQueues": { "active": sums.active, "empty": sums.empty, "tasks": sums.others },
        "totalTasks": sums.main + sums.others,
    });
    value
}

/// The same as text.
pub(super) fn queues(all: &[QueueDump], show_empty: bool) -> String {
    let mut text: String = all.iter().filter(|dump| dump.tasks_count > 0).map(queue).collect();
    let empty: Vec<&QueueDump> = all.iter().filter(|queue| queue.tasks_count == 0).collect();
    if show_empty && !empty.is_empty() {
        let _ = writeln!(text, "Empty queues ({}):", empty.len());
        for queue in &empty {
            let _ = writeln!(text, "- {}", queue.name);
        }
        text.push('\n');
    }
    let sums = Sums::of(all);
    let _ = writeln!(text, "Summary:\n- 'main' queue: {}.", tasks(sums.main));
    let others = sums.active + sums.empty;
    let _ = writeln!(
        text,
        "- {others} other queues ({} active, {} empty): {}.",
        sums.active,
        sums.empty,
        tasks(sums.others)
    );
    let _ = writeln!(text, "- total {} to handle.", tasks(sums.main + sums.others));
    text
}

/// Why the hooks that are active are not those in the directory.
pub(super) fn reload_failure(error: &str) -> String {
    format!("\nThe hooks in the directory have changed and are not used, because:\n{}\n", error.trim_end())
}

/// One queue with its tasks.
pub(super) fn queue(dump: &QueueDump) -> String {
    let mut text =
        format!("Queue '{}': length {}, status: '{}'\n\n", dump.name, dump.tasks_count, dump.status);
    for task in &dump.tasks {
        let _ = writeln!(text, "{:2}. {}", task.index, task.description);
    }
    text.push('\n');
    text
}

struct Sums {
    main: usize,
    others: usize,
    active: usize,
    empty: usize,
}

impl Sums {
    fn of(all: &[QueueDump]) -> Self {
        let main = all.iter().find(|queue| queue.name == MAIN_QUEUE).map_or(0, |queue| queue.tasks_count);
        let others = || all.iter().filter(|queue| queue.name != MAIN_QUEUE);
        Self {
            main,
            others: others().map(|queue| queue.tasks_count).sum(),
            active: others().filter(|queue| queue.tasks_count > 0).count(),
            empty: others().filter(|queue| queue.tasks_count == 0).count(),
        }
    }
}

fn tasks(count: usize) -> String {
    if count == 1 { "1 task".to_owned() } else { format!("{count} tasks") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::queue::TaskDump;

    fn dump(name: &str, tasks: &[&str]) -> QueueDump {
        let task = |(i, text): (usize, &&str)| TaskDump { index: i + 1, description: (*text).to_owned() };
        let status = if tasks.is_empty() { "" } else { "run first task" }.to_owned();
        let tasks: Vec<TaskDump> = tasks.iter().enumerate().map(task).collect();
        QueueDump { name: name.to_owned(), tasks_count: tasks.len(), status, tasks }
    }

    #[test]
    fn queues_are_listed_as_by_the_original() {
        let all = [dump("main", &["HookRun:a", "B"]), dump("q1", &[]), dump("q2", &[])];
        let expected = "Queue 'main': length 2, status: 'run first task'\n\n 1. HookRun:a\n 2. B\n\n\
            Empty queues (2):\n- q1\n- q2\n\nSummary:\n- 'main' queue: 2 tasks.\n\
            - 2 other queues (0 active, 2 empty): 0 tasks.\n- total 2 tasks to handle.\n";
        assert_eq!(queues(&all, true), expected);
        let json = r#"{"active":[{"name":"main","tasksCount":2,"status":"run first task","tasks":[{"index":1,"description":"HookRun:a"},{"index":2,"description":"B"}]}],"summary":{"mainQueueTasks":2,"otherQueues":{"active":0,"empty":2,"tasks":0},"totalTasks":2}}"#;
        assert_eq!(summary(&all, false).to_string(), json);
    }
}
