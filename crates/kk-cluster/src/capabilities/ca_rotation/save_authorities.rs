//! Save the new CAs on the control machine.

use std::sync::Arc;

use async_trait::async_trait;
use kk_engine::{Action, Apply, CONTROL, Change, Context, Facts, Failure, HostWork, Run, Task};

use super::Authorities;
use crate::base::slots;

/// Saves the new CAs before any host gets them.
pub(super) fn task(authorities: &Arc<Authorities>) -> Task {
    let work =
        HostWork::new(vec![Box::new(Save(authorities.clone()))]).provides(slots::etcd_certificates_slot());
    Task::new("save_authorities", "Save the new CAs on the control machine").on(CONTROL, work)
}

struct Save(Arc<Authorities>);

impl Action for Save {
    fn check(&self, _facts: &Facts) -> Change {
        if self.0.is_saved() {
            Change::None
        } else {
            Change::needed("create CAs for the cluster, the front proxy and etcd")
        }
    }

    fn apply(&self, _facts: &Facts) -> Apply {
        Apply::Run(Arc::new(Self(self.0.clone())))
    }
}

#[async_trait]
impl Run for Save {
    async fn run(&self, _context: Context) -> Result<(), Failure> {
        self.0.save().map_err(|error| Failure::new(error.to_string()))
    }
}
