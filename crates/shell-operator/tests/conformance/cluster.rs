//! Hooks on a real API server.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde::Deserialize;
use serde_json::Value;

use crate::control_plane::{ControlPlane, free_port, shared};
use crate::operator::{Operator, Setup};
use crate::value::covers;

/// How long nothing more may follow the expected events.
const QUIET: Duration = Duration::from_millis(700);

/// An operator with hooks, what happens in the cluster, and what the hooks get. `$NS` is a name of its own for each run.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Cluster {
    /// Objects that are there before the operator starts.
    #[serde(default)]
    before: String,
    hooks: Vec<Hook>,
    /// Whether API requests are answered by hooks.
    #[serde(default)]
    webhooks: bool,
    /// Events while it runs, one after the other.
    #[serde(default)]
    steps: Vec<Step>,
    /// The contexts of all runs of each hook in order, as far as they matter.
    #[serde(default)]
    contexts: BTreeMap<String, Vec<Value>>,
    /// Whether the contexts of hooks may be in any order, because nothing orders the events.
    #[serde(default)]
    unordered: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Hook {
    name: String,
    config: String,
    /// Bash text that runs in addition to keeping the contexts.
    #[serde(default)]
    body: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Step {
    /// Objects to create or change.
    apply: Option<String>,
    /// Arguments of kubectl.
    kubectl: Option<String>,
    /// Parts of what kubectl prints; waited for.
    output: Option<Vec<String>>,
    /// kubectl must fail with this message.
    fails: Option<String>,
    /// Waits until each hook has had so many contexts.
    wait_contexts: Option<BTreeMap<String, usize>>,
    /// Waits until the log has this.
    wait_log: Option<String>,
    /// A path of the operator's port, and parts of the answer; waited for.
    get: Option<(String, Vec<String>)>,
    /// A debug command, and parts of its answer; waited for.
    debug: Option<(Vec<String>, Vec<String>)>,
}

impl Cluster {
    pub(crate) fn run(&self) -> Result<(), String> {
        static NAMES: AtomicUsize = AtomicUsize::new(0);
        let run =
            Running { plane: shared(), name: format!("case-{}", NAMES.fetch_add(1, Ordering::Relaxed)) };
        if !self.before.is_empty() {
            run.apply(&self.before);
        }
        let operator = run.start(self);
        for (position, step) in self.steps.iter().enumerate() {
            run.step(&operator, step)
                .map_err(|why| format!("steps[{position}]: {why}\n{}", operator.log()))?;
        }
        for (hook, expected) in &self.contexts {
            let expected: Vec<Value> = expected
                .iter()
                .map(|value| serde_json::from_str(&run.text(&value.to_string())).unwrap())
                .collect();
            wait(|| operator.all_contexts(hook).len() >= expected.len());
            std::thread::sleep(QUIET);
            let contexts = operator.all_contexts(hook);
            if !fit(&contexts, &expected, self.unordered) {
                let (contexts, expected) = (Value::Array(contexts), Value::Array(expected));
                return Err(format!(
                    "{hook}: expected {expected}\n but it got {contexts}\n{}",
                    operator.log()
                ));
            }
        }
        Ok(())
    }
}

fn fit(contexts: &[Value], expected: &[Value], unordered: bool) -> bool {
    if !unordered {
        return covers(&contexts.into(), &expected.into());
    }
    let mut left: Vec<&Value> = contexts.iter().collect();
    expected.iter().all(|wanted| {
        let found = left.iter().position(|context| covers(context, wanted));
        found.map(|position| left.remove(position)).is_some()
    }) && left.is_empty()
}

/// Waits until `done`, but not for ever; the checks after it report what is missing.
fn wait(mut done: impl FnMut() -> bool) -> bool {
    for _ in 0..400 {
        if done() {
            return true;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    false
}

struct Running {
    plane: &'static ControlPlane,
    name: String,
}

impl Running {
    fn text(&self, text: &str) -> String {
        text.replace("$NS", &self.name)
    }

    fn apply(&self, yaml: &str) {
        self.plane.apply(&self.text(yaml));
    }

    fn start(&self, case: &Cluster) -> Operator {
        let mut setup = Setup::new(self.plane);
        if case.webhooks {
            for flag in [
                "--webhook-self-signed".to_owned(),
                "--webhook-external-host=127.0.0.1".to_owned(),
                format!("--namespace={}", self.name),
                format!("--validating-webhook-configuration-name={}", self.name),
                "--validating-webhook-listen-address=127.0.0.1".to_owned(),
                "--conversion-webhook-listen-address=127.0.0.1".to_owned(),
                format!("--validating-webhook-listen-port={}", free_port()),
                format!("--conversion-webhook-listen-port={}", free_port()),
            ] {
                setup = setup.flag(&flag);
            }
        }
        for hook in &case.hooks {
            setup =
                setup.hook(&hook.name, &self.text(&hook.config), &format!("keep\n{}", self.text(&hook.body)));
        }
        setup.start()
    }

    fn step(&self, operator: &Operator, step: &Step) -> Result<(), String> {
        if let Some(yaml) = &step.apply {
            self.apply(yaml);
        }
        if let Some(line) = &step.kubectl {
            self.kubectl(&self.text(line), step)?;
        }
        for (hook, count) in step.wait_contexts.iter().flatten() {
            if !wait(|| operator.all_contexts(hook).len() >= *count) {
                return Err(format!("{hook} has had {} contexts", operator.all_contexts(hook).len()));
            }
        }
        if let Some(text) = &step.wait_log
            && !wait(|| operator.log().contains(&self.text(text)))
        {
            return Err(format!("{text:?} is not in the log"));
        }
        if let Some((path, parts)) = &step.get {
            self.answer(parts, || operator.get(path))?;
        }
        if let Some((command, parts)) = &step.debug {
            let socket = operator.socket().display().to_string();
            let mut arguments: Vec<&str> = command.iter().map(String::as_str).collect();
            arguments.extend(["--debug-unix-socket", &socket]);
            self.answer(parts, || {
                let (code, text) = crate::operator::run_program(&arguments, operator.out().parent().unwrap());
                if code == Some(0) { Ok(text) } else { Err(text) }
            })?;
        }
        Ok(())
    }

    fn kubectl(&self, line: &str, step: &Step) -> Result<(), String> {
        match (&step.fails, &step.output) {
            (Some(expected), _) => match self.plane.try_kubectl(line) {
                Err(error) if error.contains(&self.text(expected)) => Ok(()),
                other => Err(format!("it should have failed with {expected:?}: {other:?}")),
            },
            (None, Some(parts)) => self.answer(parts, || self.plane.try_kubectl(line)),
            (None, None) => self.plane.try_kubectl(line).map(drop),
        }
    }

    /// Asks until the answer has all parts.
    fn answer(&self, parts: &[String], ask: impl Fn() -> Result<String, String>) -> Result<(), String> {
        let parts: Vec<String> = parts.iter().map(|part| self.text(part)).collect();
        let mut last = Ok(String::new());
        let good = wait(|| {
            last = ask();
            last.as_ref().is_ok_and(|text| parts.iter().all(|part| text.contains(part.as_str())))
        });
        if good { Ok(()) } else { Err(format!("expected {parts:?}, but the answer is {last:?}")) }
    }
}
