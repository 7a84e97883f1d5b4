//! Action for nodes that runs on a control plane and includes only nodes that have joined when it starts.

use std::sync::Arc;

use kk_config::Host;
use kk_engine::{Action, Apply, Change, Facts, Failure, Load};

use crate::{base::slots, model::inputs::Inputs};

/// Creates the action for some of the nodes.
type Make<A> = Arc<dyn Fn(&[&Host]) -> A + Send + Sync>;

/// A script for nodes. With `--ignore-err`, hosts whose join failed are left out of it. The task must wait for `joined` of all
/// nodes.
pub(crate) struct ForJoined<A> {
    nodes: Vec<Host>,
    make: Make<A>,
}

impl<A: Action> ForJoined<A> {
    /// `make` creates the script: for all nodes when it is planned, possibly for fewer when it runs.
    pub(crate) fn new(inputs: &Inputs, make: impl Fn(&[&Host]) -> A + Send + Sync + 'static) -> Self {
        Self {
            nodes: inputs.nodes().into_iter().map(|(host, _)| host.clone()).collect(),
            make: Arc::new(make),
        }
    }

    fn of_all(&self) -> A {
        (self.make)(&self.nodes.iter().collect::<Vec<_>>())
    }
}

impl<A: Action + 'static> Action for ForJoined<A> {
    fn check(&self, facts: &Facts) -> Change {
        self.of_all().check(facts)
    }

    fn apply(&self, facts: &Facts) -> Apply {
        let (nodes, make, facts) = (self.nodes.clone(), self.make.clone(), facts.clone());
        Apply::Late(Box::new(move |values| {
            let joined: Vec<&Host> =
                nodes.iter().filter(|host| values.is_filled(&slots::joined_slot(&host.name))).collect();
            match make(&joined).apply(&facts) {
                Apply::Script(script) => Ok(script),
                _ => Err(Failure::new("only scripts can be made late")),
            }
        }))
    }

    fn load(&self) -> Load {
        self.of_all().load()
    }

    fn transient(&self, code: i32, stderr: &str) -> bool {
        self.of_all().transient(code, stderr)
    }

    fn hint(&self, stderr: &str) -> Option<String> {
        self.of_all().hint(stderr)
    }
}
