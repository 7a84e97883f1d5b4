//! The operator's own metrics, with the names that the original gives them.

use std::sync::Arc;
use std::time::Duration;

use super::{Histogram, Labels, Registry};

/// Buckets of run times in seconds.
const RUN_SECONDS: [f64; 15] =
    [0.0, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0];
/// Buckets of short work in seconds.
const WORK_SECONDS: [f64; 14] =
    [0.0, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0];
/// Buckets of a queue's own work in seconds.
const QUEUE_SECONDS: [f64; 13] =
    [0.0, 0.000_1, 0.000_2, 0.000_5, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5];

/// Writes the operator's metrics; all names get the prefix. Cheap to clone.
#[derive(Clone, Debug)]
pub struct OperatorMetrics {
    pub(super) registry: Arc<Registry>,
    pub(super) prefix: Arc<str>,
}

/// Labels that name where a hook ran.
fn place(hook: &str, binding: &str, queue: &str) -> Labels {
    [("hook", hook), ("binding", binding), ("queue", queue)].map(|(k, v)| (k.to_owned(), v.to_owned())).into()
}

fn one(name: &str, value: &str) -> Labels {
    Labels::from([(name.to_owned(), value.to_owned())])
}

impl OperatorMetrics {
    /// Metrics with this prefix.
    pub fn new(prefix: &str) -> Self {
        Self { registry: Arc::new(Registry::default()), prefix: prefix.into() }
    }

    /// All metrics in the Prometheus text format.
    pub fn text(&self) -> String {
        self.registry.text()
    }

    /// Reports that the operator is alive; every 10 s.
    pub fn live_tick(&self) {
        self.add("live_ticks", Labels::new(), 1.0, "Ticks every 10 seconds while the operator lives.");
    }

    /// Number of waiting tasks and of their reasons to run hooks, and how long the first task has been the first.
    #[expect(clippy::cast_precision_loss, reason = "no queue is that long")]
    pub fn queue_state(&self, queue: &str, length: usize, contexts: usize, busy_for: Duration) {
        self.set(
            "tasks_queue_head_seconds",
            one("queue", queue),
            busy_for.as_secs_f64(),
            "How long the first task of a queue has been the first: it runs, waits for its turn, or fails.",
        );
        self.set(
            "tasks_queue_contexts",
            one("queue", queue),
            contexts as f64,
            "Binding contexts waiting in a queue.",
        );
        self.set("tasks_queue_length", one("queue", queue), length as f64, "Tasks waiting in a queue.");
    }

    /// Time that a list operation on a queue took.
    pub fn queue_action(&self, queue: &str, action: &str, time: Duration) {
        let labels =
            [("queue_name", queue), ("queue_action", action)].map(|(k, v)| (k.to_owned(), v.to_owned()));
        self.observe(
            "tasks_queue_action_duration_seconds",
            labels.into(),
            time,
            &QUEUE_SECONDS,
            "Time of a queue's own work.",
        );
    }

    /// Records whether the kubernetes bindings of a hook have been set up.
    pub fn bindings_enabled(&self, hook: &str, time: Duration, success: bool) {
        let labels = one("hook", hook);
        let number = if success { 1.0 } else { 0.0 };
        self.set(
            "hook_enable_kubernetes_bindings_seconds",
            labels.clone(),
            time.as_secs_f64(),
            "Time to set up a hook's kubernetes bindings.",
        );
        self.set(
            "hook_enable_kubernetes_bindings_success",
            labels.clone(),
            number,
            "1 when a hook's kubernetes bindings are set up.",
        );
        let errors = if success { 0.0 } else { 1.0 };
        self.add(
            "hook_enable_kubernetes_bindings_errors_total",
            labels,
            errors,
            "Failures to set up a hook's kubernetes bindings.",
        );
    }

    /// A run of a hook has ended.
    pub fn hook_ran(&self, hook: &str, binding: &str, queue: &str, run: &RunUsage, result: RunResult) {
        let labels = place(hook, binding, queue);
        self.observe("hook_run_seconds", labels.clone(), run.wall, &RUN_SECONDS, "Time of a hook's run.");
        self.observe(
            "hook_run_user_cpu_seconds",
            labels.clone(),
            run.user,
            &RUN_SECONDS,
            "User CPU time of a hook's run.",
        );
        self.observe(
            "hook_run_sys_cpu_seconds",
            labels.clone(),
            run.system,
            &RUN_SECONDS,
            "System CPU time of a hook's run.",
        );
        // Unknown for a run that ended before its memory was read: then the value of an earlier run stays.
        if run.max_rss_bytes > 0 {
            #[expect(clippy::cast_precision_loss, reason = "a rounded size is enough")]
            let bytes = run.max_rss_bytes as f64;
            self.set("hook_run_max_rss_bytes", labels.clone(), bytes, "Most memory a hook's run had.");
        }
        let one_if = |wanted: RunResult| if result == wanted { 1.0 } else { 0.0 };
        let (failed, allowed, success) =
            (one_if(RunResult::Failed), one_if(RunResult::AllowedToFail), one_if(RunResult::Success));
        self.add("hook_run_errors_total", labels.clone(), failed, "Failed runs of a hook.");
        self.add(
            "hook_run_allowed_errors_total",
            labels.clone(),
            allowed,
            "Failed runs of a hook that may fail.",
        );
        self.add("hook_run_success_total", labels, success, "Good runs of a hook.");
    }

    /// Whether the last run of a hook in a queue failed: 1, else 0.
    pub fn hook_failing(&self, hook: &str, queue: &str, failing: bool) {
        let labels = [("hook", hook), ("queue", queue)].map(|(k, v)| (k.to_owned(), v.to_owned())).into();
        let number = if failing { 1.0 } else { 0.0 };
        self.set(
            "hook_failing",
            labels,
            number,
            "1 while the last run of the hook failed and is tried again.",
        );
    }

    /// Records that changed hooks were taken over, or that the old ones stay because some are wrong.
    pub fn hooks_reloaded(&self, success: bool) {
        let result = if success { "success" } else { "error" };
        self.add("hooks_reloads_total", one("result", result), 1.0, "Attempts to take over changed hooks.");
        let failing = if success { 0.0 } else { 1.0 };
        let help = "1 while the hooks in the directory are wrong and those before stay active.";
        self.set("hooks_reload_failing", Labels::new(), failing, help);
    }

    /// Whether a part of the webhooks cannot be set up: 1, else 0.
    pub fn webhooks_failing(&self, kind: &str, part: &str, failing: bool) {
        let labels = [("kind", kind), ("part", part)].map(|(k, v)| (k.to_owned(), v.to_owned())).into();
        let number = if failing { 1.0 } else { 0.0 };
        self.set("webhooks_failing", labels, number, "1 while a part of the webhooks cannot be set up.");
    }

    /// The API server did not wait for the answer of a hook.
    pub fn webhook_given_up(&self, hook: &str, binding: &str) {
        let labels = [("hook", hook), ("binding", binding)].map(|(k, v)| (k.to_owned(), v.to_owned())).into();
        let help = "Questions of the API server that it did not wait for the answer of.";
        self.add("webhook_requests_given_up_total", labels, 1.0, help);
    }

    /// Time that a task had to wait.
    pub fn task_waited(&self, hook: &str, binding: &str, queue: &str, time: Duration) {
        let labels = place(hook, binding, queue);
        self.add("task_wait_in_queue_seconds_total", labels, time.as_secs_f64(), "Time that tasks waited.");
    }

    /// Number of objects a binding knows.
    #[expect(clippy::cast_precision_loss, reason = "no cluster has that many objects")]
    pub fn snapshot_objects(&self, hook: &str, binding: &str, queue: &str, count: usize) {
        self.set(
            "kube_snapshot_objects",
            place(hook, binding, queue),
            count as f64,
            "Objects a binding knows.",
        );
    }

    /// Removes the metrics of the present state of a hook that is gone; counters stay.
    pub fn forget_state(&self, hook: &str) {
        self.registry.remove_gauges("hook", hook);
    }

    /// Where the times of a binding's events go.
    pub fn event_times(&self, hook: &str, binding: &str, queue: &str, has_filter: bool) -> EventTimes {
        let histogram = |name, help| {
            let name = format!("{}{name}", self.prefix);
            // A name is used with one kind only, so there is no contradiction.
            let histogram = self.registry.histogram(&name, place(hook, binding, queue), None, &WORK_SECONDS);
            self.registry.describe(&name, help);
            histogram.unwrap_or_default()
        };
        EventTimes {
            event: histogram("kube_event_duration_seconds", "Time to deal with a change."),
            filter: has_filter.then(|| histogram("kube_jq_filter_duration_seconds", "Time of a jqFilter.")),
        }
    }

    /// A watch broke.
    pub fn watch_error(&self, kind: &str) {
        self.add("kubernetes_client_watch_errors_total", one("error_type", kind), 1.0, "Watches that broke.");
    }

    pub(super) fn add(&self, name: &str, labels: Labels, value: f64, help: &'static str) {
        let name = format!("{}{name}", self.prefix);
        // A name is used with one kind only, in this file, so there is no contradiction.
        let _ = self.registry.add(&name, labels, None, value);
        self.registry.describe(&name, help);
    }

    fn set(&self, name: &str, labels: Labels, value: f64, help: &'static str) {
        let name = format!("{}{name}", self.prefix);
        let _ = self.registry.set(&name, labels, None, value);
        self.registry.describe(&name, help);
    }

    pub(super) fn observe(
        &self,
        name: &str,
        labels: Labels,
        time: Duration,
        buckets: &[f64],
        help: &'static str,
    ) {
        let name = format!("{}{name}", self.prefix);
        let _ = self.registry.observe(&name, labels, None, time.as_secs_f64(), buckets);
        self.registry.describe(&name, help);
    }
}

/// The histograms for the times of a binding's events: there may be many thousands a second.
#[derive(Debug)]
pub struct EventTimes {
    event: Histogram,
    filter: Option<Histogram>,
}

impl EventTimes {
    /// A change of an object took so long, the filter alone `filter`.
    pub fn observe(&self, event: Duration, filter: Duration) {
        self.event.observe(event.as_secs_f64());
        if let Some(histogram) = &self.filter {
            histogram.observe(filter.as_secs_f64());
        }
    }
}

/// The resources that a run used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RunUsage {
    /// Time on the clock.
    pub wall: Duration,
    /// CPU time in the hook and the children it waited for.
    pub user: Duration,
    /// CPU time in the kernel.
    pub system: Duration,
    /// Most memory, in bytes; 0 when it is not known.
    pub max_rss_bytes: u64,
}

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunResult {
    /// It succeeded.
    Success,
    /// It failed, and is repeated.
    Failed,
    /// It failed, which was allowed.
    AllowedToFail,
}
