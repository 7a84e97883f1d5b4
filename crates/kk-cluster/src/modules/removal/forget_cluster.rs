//! Forget the cluster on this machine: its certificates, keys and kubeconfig. The records of runs stay.

use std::{path::PathBuf, sync::Arc};

use async_trait::async_trait;
use kk_engine::{Action, Apply, CONTROL, Change, Context, Facts, Failure, HostWork, Run, Task};

use super::{Removal, removed};

/// Only when every host is done: a host that is left over needs the vault for the next try.
pub(super) fn task(removal: &Removal) -> Task {
    let forget = Forget(vec![
        removal.folder.join("pki"),
        removal.folder.join("kubeconfig"),
        removal.folder.join(".kubeconfig.source"),
    ]);
    let mut work = HostWork::new(vec![Box::new(forget)]);
    for host in &removal.spec.hosts {
        work = work.needs(removed(&host.name).key());
    }
    Task::new("forget_cluster", "Remove certificates from this machine").on(CONTROL, work)
}

#[derive(Clone)]
struct Forget(Vec<PathBuf>);

impl Action for Forget {
    fn check(&self, _facts: &Facts) -> Change {
        let there: Vec<String> = self
            .0
            .iter()
            .filter(|path| path.exists())
            .map(|path| format!("remove {}", path.display()))
            .collect();
        if there.is_empty() { Change::None } else { Change::Needed(there) }
    }

    fn apply(&self, _facts: &Facts) -> Apply {
        Apply::Run(Arc::new(self.clone()))
    }
}

#[async_trait]
impl Run for Forget {
    async fn run(&self, _context: Context) -> Result<(), Failure> {
        for path in &self.0 {
            let gone = if path.is_dir() { std::fs::remove_dir_all(path) } else { std::fs::remove_file(path) };
            match gone {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                    return Err(Failure::new(format!("cannot remove {}: {error}", path.display())));
                }
                _ => {}
            }
        }
        Ok(())
    }
}
