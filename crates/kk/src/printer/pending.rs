//! Collects events that are shown together: findings as one table, the plan, the problems, the end of a run.
//!
//! [`Pending`] stores them until the event that ends their group.

use kk_engine::{EventKind, Finding, PlannedTask, Problem, Summary};

use super::{Paint, errors, findings, plan, summary};

/// The events that wait to be shown.
#[derive(Default)]
pub(super) struct Pending {
    dry_run: bool,
    findings: Vec<Finding>,
    planned: Vec<PlannedTask>,
    problems: Vec<Problem>,
    summary: Option<Summary>,
    /// Modules that changed something, and their time in milliseconds.
    modules: Vec<(String, u64)>,
}

/// The text to show now.
#[derive(Default)]
pub(super) struct Shown {
    /// For standard error.
    pub(super) message: String,
    /// For standard output: the plan of a dry run.
    pub(super) data: Option<String>,
}

impl Pending {
    /// Stores an event that belongs to a group, and returns the text of a group that the event completes.
    pub(super) fn event(&mut self, event: &EventKind, paints: [Paint; 2], width: usize) -> Shown {
        let [paint, data_paint] = paints;
        let mut shown = Shown::default();
        match event {
            EventKind::RunStarted { dry_run, .. } => *self = Self { dry_run: *dry_run, ..Self::default() },
            EventKind::Finding(finding) => self.findings.push(finding.clone()),
            EventKind::PlannedTask(task) if self.dry_run => self.planned.push(task.clone()),
            EventKind::Error(problem) => self.problems.push(problem.clone()),
            EventKind::Summary(summary) => self.summary = Some(summary.clone()),
            EventKind::ModuleFinished { module, took_ms } => self.modules.push((module.clone(), *took_ms)),
            EventKind::Planned { .. } => shown.message = self.findings(paint, width),
            EventKind::RunFinished { changed, log, took_ms, .. } => {
                shown.message = self.findings(paint, width);
                let problems = std::mem::take(&mut self.problems);
                let is_whole = problems.is_empty();
                if !is_whole {
                    let closing = errors::closing(&problems, *changed, log.as_deref());
                    shown.message += &format!("{}\n{closing}", errors::render(&problems, paint));
                }
                // Findings that end the run do not hide the plan, which shows the other work. But an empty plan together with a
                // problem does not mean that there is nothing to do, so it is not shown.
                let planned = std::mem::take(&mut self.planned);
                if self.dry_run && (is_whole || !planned.is_empty()) {
                    shown.data = Some(plan::render(&planned, data_paint));
                }
                if let Some(summary) = self.summary.take() {
                    let end = summary::End {
                        changed: *changed,
                        took_ms: *took_ms,
                        log: log.as_deref(),
                        modules: &self.modules,
                    };
                    shown.message += &summary::render(&summary, &end, paint, width);
                }
            }
            _ => {}
        }
        shown
    }

    /// The problems of a command that did not begin a run.
    pub(super) fn problems(&mut self, paint: Paint) -> String {
        let problems = std::mem::take(&mut self.problems);
        let text = errors::render(&problems, paint);
        match errors::count(&problems) {
            Some(count) => format!("{text}\n{count}"),
            None => text,
        }
    }

    fn findings(&mut self, paint: Paint, width: usize) -> String {
        let findings = std::mem::take(&mut self.findings);
        if findings.is_empty() {
            return String::new();
        }
        format!("\n{}\n", findings::render(&findings, paint, width))
    }
}

#[cfg(test)]
mod tests {
    use kk_engine::Severity;

    use super::*;

    const PLAIN: [Paint; 2] = [Paint::PLAIN; 2];

    fn begin(dry_run: bool) -> Pending {
        let mut pending = Pending::default();
        let (command, hosts, time) = ("create cluster".into(), vec!["node1".into()], String::new());
        pending.event(&EventKind::RunStarted { command, hosts, time, dry_run }, PLAIN, 80);
        let finding = Finding {
            severity: Severity::Error,
            host: Some("node1".into()),
            message: "too small".into(),
            hint: "grow it".into(),
        };
        assert!(pending.event(&EventKind::Finding(finding), PLAIN, 80).message.is_empty());
        let planned = pending.event(&EventKind::Planned { modules: Vec::new() }, PLAIN, 80);
        assert!(planned.message.contains("node1  too small  grow it"), "{}", planned.message);
        let task = PlannedTask {
            module: "etcd".into(),
            task: "start_etcd".into(),
            title: "Start etcd".into(),
            host: "node1".into(),
            changes: vec!["start etcd".into()],
        };
        pending.event(&EventKind::PlannedTask(task), PLAIN, 80);
        pending
    }

    fn finish(pending: &mut Pending, exit_code: u8) -> Shown {
        let finished = EventKind::RunFinished {
            ok: exit_code == 0,
            exit_code,
            changed: 0,
            round_trips: std::collections::BTreeMap::new(),
            log: None,
            took_ms: 1,
        };
        pending.event(&finished, PLAIN, 80)
    }

    #[test]
    fn findings_come_before_the_plan_and_problems_at_the_end() {
        let mut pending = begin(false);
        let problem =
            Problem { exit_code: 5, message: "1 problem must be fixed first".into(), ..Problem::default() };
        assert!(pending.event(&EventKind::Error(problem), PLAIN, 80).message.is_empty());
        let shown = finish(&mut pending, 5);
        let wanted = "error: 1 problem must be fixed first\n\nnothing was changed on any host\n";
        assert_eq!((shown.message.as_str(), shown.data), (wanted, None));
    }

    #[test]
    fn a_dry_run_without_a_plan_says_that_nothing_is_to_do_only_when_that_is_so() {
        let dry_run = |problems: &[Problem]| {
            let mut pending = Pending::default();
            let (command, hosts, time) = ("create cluster".into(), Vec::new(), String::new());
            pending.event(&EventKind::RunStarted { command, hosts, time, dry_run: true }, PLAIN, 80);
            for problem in problems {
                pending.event(&EventKind::Error(problem.clone()), PLAIN, 80);
            }
            finish(&mut pending, 0).data
        };
        assert_eq!(dry_run(&[]).as_deref(), Some("nothing to do\n"));
        assert_eq!(dry_run(&[Problem::default()]), None);
    }

    #[test]
    fn the_plan_of_a_dry_run_is_data() {
        let shown = finish(&mut begin(true), 0);
        let data = shown.data.expect("a dry run shows its plan");
        assert!(
            shown.message.is_empty() && data.contains("Start etcd") && data.contains("1 change on 1 host")
        );
    }
}
