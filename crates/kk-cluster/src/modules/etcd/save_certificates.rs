//! Save certificates of etcd in the vault on this machine.

use std::sync::Arc;

use async_trait::async_trait;
use kk_engine::{Action, Apply, CONTROL, Change, Context, Facts, Failure, HostWork, Run, Slot, Task};

use crate::{Target, vault::Vault};

/// Fills once the vault is on disk: keys that a host holds must not be lost with this process.
pub(super) fn saved() -> Slot<()> {
    Slot::new("etcd_certificates")
}

/// Writes what was made in memory while the plan was built.
pub(super) fn task(target: &Target) -> Task {
    let action = Save(target.vault.clone());
    Task::new("save_certificates", "Save certificates of etcd")
        .on(CONTROL, HostWork::new(vec![Box::new(action)]).provides(saved().key()))
}

struct Save(Arc<Vault>);

impl Action for Save {
    fn check(&self, _facts: &Facts) -> Change {
        if self.0.is_saved() { Change::None } else { Change::needed("make etcd's CA and certificates") }
    }

    fn apply(&self, _facts: &Facts) -> Apply {
        Apply::Run(Arc::new(SaveVault(self.0.clone())))
    }
}

struct SaveVault(Arc<Vault>);

#[async_trait]
impl Run for SaveVault {
    async fn run(&self, _context: Context) -> Result<(), Failure> {
        self.0.save().map_err(|error| Failure::new(error.to_string()))
    }
}
