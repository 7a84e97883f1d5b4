//! Shell text that a module provides.

use std::sync::Arc;

use super::hints::Hints;
use crate::{Action, Apply, Change, Facts, Load, OutputFn, ProbeSpec, Script};

/// The condition under which the script runs.
type When = Arc<dyn Fn(&Facts) -> bool + Send + Sync>;

/// Shell text that runs if the facts require it, for changes that no other action covers.
#[derive(Clone)]
pub struct Command {
    describe: String,
    script: Script,
    when: When,
    reads: ProbeSpec,
    hints: Hints,
    transient: Vec<String>,
    load: Load,
}

impl Command {
    /// Runs `script` always; [`Command::when`] sets a condition. `describe` is printed by the dry run: "load images".
    pub fn new(describe: impl Into<String>, script: impl Into<String>) -> Self {
        Self {
            describe: describe.into(),
            script: Script::new(script),
            when: Arc::new(|_| true),
            reads: ProbeSpec::default(),
            hints: Hints::default(),
            transient: Vec::new(),
            load: Load::Work,
        }
    }

    /// Runs only on a host whose facts fulfil the condition.
    #[must_use]
    pub fn when(mut self, when: impl Fn(&Facts) -> bool + Send + Sync + 'static) -> Self {
        self.when = Arc::new(when);
        self
    }

    /// Declares the facts that [`Command::when`] reads, so that the probe gathers them.
    #[must_use]
    pub fn reads(mut self, declare: impl FnOnce(&mut ProbeSpec)) -> Self {
        declare(&mut self.reads);
        self
    }

    /// Adds a file to the script's directory. Secrets are sent in such files.
    #[must_use]
    pub fn file(mut self, name: impl Into<String>, content: impl Into<Arc<[u8]>>) -> Self {
        self.script = self.script.with_file(name, content);
        self
    }

    /// Adds several files, by name and content.
    #[must_use]
    pub fn files(self, files: impl IntoIterator<Item = (String, Vec<u8>)>) -> Self {
        files.into_iter().fold(self, |command, (name, content)| command.file(name, content))
    }

    /// Reads the script's standard output into slots.
    #[must_use]
    pub fn output(mut self, output: OutputFn) -> Self {
        self.script.output = Some(output);
        self
    }

    /// Sets the hint for a failure whose message contains `text`.
    #[must_use]
    pub fn hint(mut self, text: impl Into<String>, hint: impl Into<String>) -> Self {
        self.hints.add(text, hint);
        self
    }

    /// Lets the task retry after a failure whose message contains `text`.
    #[must_use]
    pub fn transient_on(mut self, text: impl Into<String>) -> Self {
        self.transient.push(text.into());
        self
    }

    /// Declares that the script only waits (`kubectl wait`, `kubectl rollout status`): it changes nothing, holds no permit, and
    /// is ended at once when the run is stopped.
    #[must_use]
    pub fn only_waits(mut self) -> Self {
        self.load = Load::Wait;
        self
    }
}

impl Action for Command {
    fn check(&self, facts: &Facts) -> Change {
        if (self.when)(facts) { Change::needed(self.describe.clone()) } else { Change::None }
    }

    fn apply(&self, _facts: &Facts) -> Apply {
        Apply::Script(self.script.clone())
    }

    fn transient(&self, _code: i32, stderr: &str) -> bool {
        self.transient.iter().any(|text| stderr.contains(text.as_str()))
    }

    fn load(&self) -> Load {
        self.load
    }

    fn asks(&self, spec: &mut ProbeSpec) {
        spec.merge(&self.reads);
    }

    fn hint(&self, stderr: &str) -> Option<String> {
        self.hints.find(stderr)
    }
}
