//! Give the kubelets time to read the Services before pods start.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use kk_engine::{Action, Apply, CONTROL, Change, Context, Facts, Failure, HostWork, Run, Task};

use super::wait_for_nodes;
use crate::{base::slots, model::inputs::Inputs};

/// The time that a kubelet needs for it after it has registered its node, with a wide margin.
const TIME: Duration = Duration::from_secs(1);

/// A kubelet refuses a pod that arrives earlier, and tries again ten seconds later. It offers no way to query whether it has read
/// the Services, so this task waits for a fixed time; it runs in the background while nodes get their labels.
pub(super) fn task(inputs: &Inputs) -> Task {
    let mut work =
        HostWork::default().needs(slots::nodes_registered_slot()).provides(slots::nodes_take_pods_slot());
    if wait_for_nodes::is_needed(inputs) {
        work.actions.push(Box::new(Pause));
    }
    Task::new("pause_for_services", "Give kubelets time to read the Services").on(CONTROL, work).background()
}

struct Pause;

impl Action for Pause {
    fn check(&self, _facts: &Facts) -> Change {
        Change::needed("give the kubelets a second to read the Services")
    }

    fn apply(&self, _facts: &Facts) -> Apply {
        Apply::Run(Arc::new(Self))
    }
}

#[async_trait]
impl Run for Pause {
    async fn run(&self, _context: Context) -> Result<(), Failure> {
        tokio::time::sleep(TIME).await;
        Ok(())
    }
}
