//! Waits on a host until a condition holds, in one round trip.

use std::{sync::Arc, time::Duration};

use kk_connector::quote;

use super::hints::Hints;
use crate::{Action, Apply, Change, Facts, Load, ProbeSpec, Script};

/// The pause between two checks.
const EVERY: Duration = Duration::from_millis(200);

/// The condition under which there is nothing to wait for.
type DoneBy = Arc<dyn Fn(&Facts) -> bool + Send + Sync>;

/// Polls a condition on the host until it holds. The host does the polling, so it costs one round trip.
#[derive(Clone)]
pub struct WaitUntil {
    describe: String,
    condition: String,
    within: Duration,
    done_by: DoneBy,
    reads: ProbeSpec,
    hints: Hints,
}

impl WaitUntil {
    /// Waits until the shell text `condition` ends with 0, checking every 200 ms, for at most two minutes. `describe` names the
    /// condition: "etcd is healthy".
    pub fn new(describe: impl Into<String>, condition: impl Into<String>) -> Self {
        Self {
            describe: describe.into(),
            condition: condition.into(),
            within: Duration::from_mins(2),
            done_by: Arc::new(|_| false),
            reads: ProbeSpec::default(),
            hints: Hints::default(),
        }
    }

    /// Sets how long to wait, in whole seconds. The task's own timeout must be longer.
    #[must_use]
    pub fn within(mut self, time: Duration) -> Self {
        self.within = time;
        self
    }

    /// Does not wait on a host whose facts show that the condition holds already.
    #[must_use]
    pub fn done_by(mut self, done: impl Fn(&Facts) -> bool + Send + Sync + 'static) -> Self {
        self.done_by = Arc::new(done);
        self
    }

    /// Declares the facts that [`WaitUntil::done_by`] reads, so that the probe gathers them.
    #[must_use]
    pub fn reads(mut self, declare: impl FnOnce(&mut ProbeSpec)) -> Self {
        declare(&mut self.reads);
        self
    }

    /// Sets the hint for a last check that failed with a message containing `text`.
    #[must_use]
    pub fn hint(mut self, text: impl Into<String>, hint: impl Into<String>) -> Self {
        self.hints.add(text, hint);
        self
    }
}

impl Action for WaitUntil {
    fn check(&self, facts: &Facts) -> Change {
        if (self.done_by)(facts) {
            Change::None
        } else {
            Change::needed(format!("wait until {}", self.describe))
        }
    }

    fn apply(&self, _facts: &Facts) -> Apply {
        let text = format!(
            "kk_wait {} {:.3} {}\n",
            self.within.as_secs().max(1),
            EVERY.as_secs_f64(),
            quote(&format!("waited until {}", self.describe)),
        );
        Apply::Script(Script::new(text).with_file("condition", self.condition.clone().into_bytes()))
    }

    fn load(&self) -> Load {
        Load::Wait
    }

    fn asks(&self, spec: &mut ProbeSpec) {
        spec.merge(&self.reads);
    }

    fn hint(&self, stderr: &str) -> Option<String> {
        self.hints.find(stderr)
    }
}
