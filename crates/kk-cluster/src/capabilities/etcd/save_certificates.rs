//! Save certificates of etcd on the control machine.

use std::sync::Arc;

use async_trait::async_trait;
use kk_engine::{Action, Apply, CONTROL, Change, Context, Facts, Failure, HostWork, Run, Task};

use crate::{
    base::{pki::Pki, slots},
    model::inputs::Inputs,
};

/// Writes the certificates that were created in memory while the plan was built.
pub(super) fn task(inputs: &Inputs) -> Task {
    let action = Save(inputs.pki.clone());
    Task::new("save_certificates", "Save certificates of etcd")
        .on(CONTROL, HostWork::new(vec![Box::new(action)]).provides(slots::etcd_certificates_slot()))
}

struct Save(Arc<Pki>);

impl Action for Save {
    fn check(&self, _facts: &Facts) -> Change {
        if self.0.is_saved() { Change::None } else { Change::needed("make etcd's CA and certificates") }
    }

    fn apply(&self, _facts: &Facts) -> Apply {
        Apply::Run(Arc::new(SavePki(self.0.clone())))
    }
}

struct SavePki(Arc<Pki>);

#[async_trait]
impl Run for SavePki {
    async fn run(&self, _context: Context) -> Result<(), Failure> {
        self.0.save().map_err(|error| Failure::new(error.to_string()))
    }
}
