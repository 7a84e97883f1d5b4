//! Formats progress as plain lines, for logs and pipes: a line for each task that changed something, each failure and each
//! module. The time before a line is the time since the run began.

use kk_engine::{Event, EventKind, Outcome};

use super::{Paint, text};

/// The lines for an event; empty for events that are useless in a log.
pub fn render(event: &Event, paint: Paint) -> String {
    let clock = paint.dim(&format!("[{:>6}]", text::duration(event.at_ms)));
    lines(&event.kind, paint).into_iter().map(|line| format!("{clock} {line}\n")).collect()
}

/// The lines for an event, without the time. The live view prints these above its bars, too.
pub(super) fn lines(event: &EventKind, paint: Paint) -> Vec<String> {
    match event {
        EventKind::RunStarted { command, hosts, .. } if hosts.is_empty() => vec![paint.bold(command)],
        EventKind::RunStarted { command, hosts, .. } => {
            let names = text::names(hosts, 8);
            vec![format!("{} on {}: {names}", paint.bold(command), text::count(hosts.len(), "host"))]
        }
        EventKind::Planned { modules } => vec![planned(modules)],
        EventKind::TaskFinished { host, module, title, outcome, took_ms, .. } => {
            finished(&format!("{host}  {module}: {title}"), outcome, *took_ms, paint).into_iter().collect()
        }
        other => headline(other, paint).into_iter().collect(),
    }
}

/// The line for an event without a task. The live view shows it, too.
pub(super) fn headline(event: &EventKind, paint: Paint) -> Option<String> {
    match event {
        EventKind::Note { host: Some(host), message } => {
            Some(format!("{} {host}: {message}", paint.cyan("note:")))
        }
        EventKind::Note { host: None, message } => Some(format!("{} {message}", paint.cyan("note:"))),
        EventKind::HostKeyLearnt { host, address, key_type, fingerprint } => Some(format!(
            "{} {host}: new host key of {address}, trusted from now on: {key_type} {fingerprint}",
            paint.cyan("note:")
        )),
        EventKind::ModuleFinished { module, took_ms } => {
            Some(format!("{} {module} {}", paint.green("done"), paint.dim(&text::duration(*took_ms))))
        }
        EventKind::Stopping { at_once: false } => {
            Some("stopping: waiting for running steps to end; press Ctrl-C again to stop at once".into())
        }
        EventKind::Stopping { at_once: true } => Some("stopping at once".into()),
        _ => None,
    }
}

fn planned(modules: &[(String, usize)]) -> String {
    let steps: usize = modules.iter().map(|(_, steps)| steps).sum();
    if steps == 0 {
        return "nothing to do".into();
    }
    let busy = modules.iter().filter(|(_, steps)| *steps > 0).count();
    format!("{} to do in {}", text::count(steps, "step"), text::count(busy, "module"))
}

/// The result of a task on a host; `what` names both.
pub(super) fn finished(what: &str, outcome: &Outcome, took_ms: u64, paint: Paint) -> Option<String> {
    let took = paint.dim(&text::duration(took_ms));
    match outcome {
        Outcome::Unchanged | Outcome::Skipped { .. } => None,
        Outcome::Changed { .. } => Some(format!("{what} {took}")),
        Outcome::Retrying { failure, wait_ms } => {
            let wait = text::duration(*wait_ms);
            Some(format!("{what}: {} {}; again in {wait}", paint.yellow("not yet:"), failure.cause))
        }
        Outcome::Failed { failure } => Some(format!("{what}: {} {}", paint.red("failed:"), failure.cause)),
    }
}
