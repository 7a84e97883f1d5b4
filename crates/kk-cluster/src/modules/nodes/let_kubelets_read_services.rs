//! Let the kubelets read the Services before pods come.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use kk_engine::{Action, Apply, CONTROL, Change, Context, Facts, Failure, HostWork, Run, Task};

use super::wait_for_nodes;
use crate::{Target, modules::slots};

/// How long a kubelet takes for it after it has registered its node, generously.
const TIME: Duration = Duration::from_secs(1);

/// A kubelet refuses a pod that comes earlier, and tries again ten seconds later. When it is so far cannot be asked for.
/// Beside the lane, in which nodes get their labels meanwhile.
pub(super) fn task(target: &Target) -> Task {
    let mut work = HostWork::default()
        .needs(wait_for_nodes::registered().key())
        .provides(slots::nodes_take_pods().key());
    if wait_for_nodes::is_needed(target) {
        work.actions.push(Box::new(Pause));
    }
    Task::new("let_kubelets_read_services", "Let kubelets read the Services").on(CONTROL, work).beside()
}

struct Pause;

impl Action for Pause {
    fn check(&self, _facts: &Facts) -> Change {
        Change::needed("let the kubelets read the Services")
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
