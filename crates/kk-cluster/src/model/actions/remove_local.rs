//! Action that removes files and directories of the control machine.

use std::{path::PathBuf, sync::Arc};

use async_trait::async_trait;
use kk_engine::{Action, Apply, Change, Context, Facts, Failure, Run};

/// Removes the paths that exist.
#[derive(Clone)]
pub(crate) struct RemoveLocal(pub Vec<PathBuf>);

impl Action for RemoveLocal {
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
impl Run for RemoveLocal {
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
