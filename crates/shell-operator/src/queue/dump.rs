//! The data of `queue list`.

use std::fmt::Write;
use std::time::Instant;

use serde::Serialize;

use super::{Queue, Status, Task, Work};

/// A queue at one moment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct QueueDump {
    /// Name of the queue.
    pub name: String,
    /// Number of waiting tasks.
    pub tasks_count: usize,
    /// The activity of the worker.
    pub status: String,
    /// The waiting tasks.
    pub tasks: Vec<TaskDump>,
}

/// A waiting task.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct TaskDump {
    /// Position, from 1.
    pub index: usize,
    /// Kind of task, queue, binding, hook, and how it failed.
    pub description: String,
}

/// Describes `queue` as it is now.
pub fn dump(queue: &Queue) -> QueueDump {
    let state = queue.lock();
    let tasks: Vec<TaskDump> = (state.tasks.iter().enumerate())
        .map(|(i, task)| TaskDump { index: i + 1, description: describe(queue.name(), task) })
        .collect();
    QueueDump {
        name: queue.name().to_string(),
        tasks_count: tasks.len(),
        status: status_text(&state.status),
        tasks,
    }
}

fn status_text(status: &Status) -> String {
    match status {
        Status::Idle => String::new(),
        Status::Running => "run first task".to_owned(),
        Status::Throttled => "wait until the hook may run again".to_owned(),
        Status::Stopped => "stop".to_owned(),
        Status::Sleeping { delay, since } => {
            let left = delay.saturating_sub(Instant::now().duration_since(*since));
            let (delay, left) = (delay.as_secs(), left.as_secs_f64().ceil());
            format!("sleep after fail for {delay}s ({left:.0}s left of {delay}s delay)")
        }
    }
}

fn describe(queue: &str, task: &Task) -> String {
    let mut text = match &task.work {
        Work::EnableKubernetesBindings => {
            format!("EnableKubernetesBindings:::{}:EnableKubernetesBindings", task.hook)
        }
        Work::EnableScheduleBindings => {
            format!("EnableScheduleBindings:::{}:EnableScheduleBindings", task.hook)
        }
        Work::Run(run) => {
            let mut text = format!("HookRun:{queue}:{}:{}", run.binding_type.as_str(), task.hook);
            if let Some(context) = run.contexts.first() {
                if let Some(group) = &context.group {
                    let _ = write!(text, ":group={group}");
                }
                let _ = write!(text, ":{}", context.binding);
            }
            text
        }
    };
    if task.failures > 0 {
        let _ = write!(text, ":failures {}", task.failures);
        if let Some(error) = &task.last_error {
            let _ = write!(text, ":{error}");
        }
    }
    text
}
