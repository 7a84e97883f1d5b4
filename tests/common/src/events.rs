//! The events of a run, as `kk --output json` prints them: one JSON object a line.

use std::collections::BTreeMap;
use std::fmt;

use anyhow::{Context as _, Result};
use serde_json::Value;

/// The events of one run so far.
#[derive(Clone, Debug, Default)]
pub struct Events(Vec<Value>);

/// A task that changed something on a host.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Changed {
    /// The host's name.
    pub host: String,
    /// `module/task`
    pub task: String,
    /// The changes, a line for each operation.
    pub lines: Vec<String>,
}

impl fmt::Display for Changed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}: {}", self.host, self.task, self.lines.join("; "))
    }
}

/// The end of a run.
#[derive(Clone, Debug)]
pub struct RunFinished {
    /// Whether the run succeeded.
    pub ok: bool,
    /// The number of tasks that changed something.
    pub changed: u64,
    /// Round trips by host, the control machine left out.
    pub round_trips: BTreeMap<String, u64>,
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

impl Events {
    /// Reads the available lines; an incomplete last line is left for the next call.
    pub fn parse(written: &str) -> Self {
        Self(written.lines().filter_map(|line| serde_json::from_str(line).ok()).collect())
    }

    fn of(&self, kind: &str) -> impl Iterator<Item = &Value> {
        self.0.iter().filter(move |event| event["event"] == kind)
    }

    /// Whether a task (`module/task`) has begun on some host.
    pub fn has_begun(&self, task: &str) -> bool {
        let (module, task) = task.split_once('/').unwrap_or((task, ""));
        self.of("task_started").any(|event| event["module"] == module && event["task"] == task)
    }

    /// All tasks that changed something, sorted by host and task.
    pub fn changes(&self) -> Vec<Changed> {
        let mut changes: Vec<Changed> = self
            .of("task_finished")
            .filter(|event| event["outcome"] == "changed")
            .map(|event| Changed {
                host: text(&event["host"]),
                task: format!("{}/{}", text(&event["module"]), text(&event["task"])),
                lines: event["changes"].as_array().into_iter().flatten().map(text).collect(),
            })
            .collect();
        changes.sort();
        changes
    }

    /// Findings about the hosts that stop the run before its first change, a line for each: host, message, hint.
    pub fn errors_found(&self) -> Vec<String> {
        self.found("error")
    }

    /// Findings of one severity, a line a finding.
    pub fn found(&self, severity: &str) -> Vec<String> {
        let found = self.of("finding").filter(|event| event["severity"] == severity);
        found
            .map(|event| {
                format!("{} {} {}", text(&event["host"]), text(&event["message"]), text(&event["hint"]))
            })
            .collect()
    }

    /// The last event. Errors: the run did not finish.
    pub fn finished(&self) -> Result<RunFinished> {
        let event = self.of("run_finished").last().context("the run printed no event `run_finished`")?;
        let trips = event["round_trips"].as_object().into_iter().flatten();
        Ok(RunFinished {
            ok: event["ok"] == true,
            changed: event["changed"].as_u64().unwrap_or(u64::MAX),
            round_trips: trips
                .filter(|(host, _)| *host != "control")
                .map(|(host, count)| (host.clone(), count.as_u64().unwrap_or(u64::MAX)))
                .collect(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RUN: &str = r#"{"at_ms":1,"event":"task_started","host":"n1","module":"etcd","task":"start_etcd","title":"Start etcd","attempt":1}
{"at_ms":2,"event":"task_finished","host":"n1","module":"etcd","task":"start_etcd","title":"Start etcd","outcome":"changed","changes":["start etcd"],"took_ms":1}
{"at_ms":2,"event":"task_finished","host":"n2","module":"etcd","task":"start_etcd","title":"Start etcd","outcome":"unchanged","took_ms":1}
{"at_ms":3,"event":"run_finished","ok":true,"changed":1,"round_trips":{"control":1,"n1":2},"took_ms":3}
{"at_ms":3,"event":"cut"#;

    #[test]
    fn a_run_is_read_with_its_last_line_cut() {
        let events = Events::parse(RUN);
        assert!(events.has_begun("etcd/start_etcd") && !events.has_begun("etcd/other"));
        let lines: Vec<String> = events.changes().iter().map(ToString::to_string).collect();
        assert_eq!(lines, ["n1 etcd/start_etcd: start etcd"]);
        let finished = events.finished().unwrap();
        assert!(finished.ok && finished.changed == 1);
        assert_eq!(finished.round_trips, BTreeMap::from([("n1".to_owned(), 2)]));
    }

    #[test]
    fn a_run_that_was_killed_has_no_end() {
        assert!(Events::default().finished().is_err());
    }
}
