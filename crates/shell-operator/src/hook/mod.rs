//! Hooks: finding them, asking for their configuration, running them.

mod children;
mod discovery;
mod files;
mod lines;
mod load;
mod process;
mod source;
mod usage;

use std::path::PathBuf;
use std::sync::Arc;

use crate::config::HookConfig;
use crate::limiter::Limiter;
pub use children::{kill_all, reap_orphans};
pub use discovery::{Found, discover};
pub use files::RunFiles;
pub use lines::{Labels, LineLog};
pub use load::{LoadError, Loader, load_all};
pub(crate) use process::GRACE;
pub use process::{Ended, ProcessError, Program, old_hooks_dir};
pub use source::{Source, Stamp, Stamps, stamps};

/// A hook whose configuration is known.
#[derive(Debug)]
pub struct Hook {
    /// Path below the hooks directory; names the hook everywhere. A hook that is loaded again has it at another address.
    pub name: Arc<str>,
    /// The program's place.
    pub path: PathBuf,
    /// The program as it was when it was loaded.
    pub source: Source,
    /// What it waits for.
    pub config: HookConfig,
    /// Keeps it from running too often.
    pub limiter: Limiter,
}

/// The hook's name with everything but letters and digits turned into `-`, for file names.
pub fn safe_name(name: &str) -> String {
    name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect()
}

#[cfg(test)]
mod tests {
    #[test]
    fn file_names_are_safe() {
        assert_eq!(
            super::safe_name("002-cool-hooks/monitor-namespaces.py"),
            "002-cool-hooks-monitor-namespaces-py"
        );
    }
}
