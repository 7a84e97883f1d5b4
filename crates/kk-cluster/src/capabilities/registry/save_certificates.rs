//! Save certificates of the registry on the control machine.

use std::sync::Arc;

use async_trait::async_trait;
use kk_engine::{Action, Apply, CONTROL, Change, Context, Facts, Failure, HostWork, Run, Task};

use super::trust;
use crate::base::{pki::Pki, slots};

/// Writes what was made in memory while the plan was built, and the CA once more where clients look for it.
pub(super) fn task(pki: &Arc<Pki>) -> Task {
    let work = HostWork::new(vec![Box::new(Save(pki.clone()))]).provides(slots::registry_certificates_slot());
    Task::new("save_certificates", "Save certificates of the registry").on(CONTROL, work)
}

#[derive(Clone)]
struct Save(Arc<Pki>);

impl Save {
    fn ca(&self) -> std::path::PathBuf {
        trust::directory(self.0.directory()).join("ca.crt")
    }
}

impl Action for Save {
    fn check(&self, _facts: &Facts) -> Change {
        let is_there = std::fs::read_to_string(self.ca()).is_ok_and(|text| text == self.0.ca_cert());
        if self.0.is_saved() && is_there {
            Change::None
        } else {
            Change::needed("make the registry's CA and certificate")
        }
    }

    fn apply(&self, _facts: &Facts) -> Apply {
        Apply::Run(Arc::new(self.clone()))
    }
}

#[async_trait]
impl Run for Save {
    async fn run(&self, _context: Context) -> Result<(), Failure> {
        self.0.save().map_err(|error| Failure::new(error.to_string()))?;
        let path = self.ca();
        let fail = |error: std::io::Error| Failure::new(format!("cannot write {}: {error}", path.display()));
        kk_util::create_private_directory(&trust::directory(self.0.directory())).map_err(fail)?;
        kk_util::write_private(&path, self.0.ca_cert()).map_err(fail)
    }
}
