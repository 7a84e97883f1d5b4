//! Hooks: finding them, asking for their configuration, running them.

mod ask;
mod children;
mod discovery;
mod files;
mod function;
mod lines;
mod load;
mod output;
mod process;
mod source;
mod start_error;
#[cfg(test)]
mod testing;
mod usage;

use std::path::PathBuf;
use std::sync::Arc;

use crate::config::HookConfig;
use crate::limiter::Limiter;
#[doc(hidden)]
pub use children::{kill_all, reap_orphans};
#[doc(hidden)]
pub use discovery::{Found, discover};
#[doc(hidden)]
pub use files::RunFiles;
pub(crate) use function::SharedBody;
pub use function::{Effects, HookBody, HookError, Input, Target};
#[doc(hidden)]
pub use lines::{Labels, LineLog};
pub(crate) use load::COPIES;
#[doc(hidden)]
pub use load::{LoadError, Loader, load_all};
pub(crate) use process::GRACE;
#[doc(hidden)]
pub use process::{Ended, ProcessError, Program, old_hooks_dir};
#[doc(hidden)]
pub use source::{Source, Stamp, Stamps, stamps};

/// A hook whose configuration is known.
#[derive(Debug)]
#[doc(hidden)]
pub struct Hook {
    /// The hook's name everywhere; for a program, its path below the hooks directory. When a hook is loaded again, its name has
    /// another address.
    pub name: Arc<str>,
    /// Its bindings and settings.
    pub config: HookConfig,
    /// Keeps it from running too often.
    pub limiter: Limiter,
    /// The program or the function that it runs.
    pub body: Body,
}

/// The program or the function of a hook.
#[doc(hidden)]
pub enum Body {
    /// It runs a program.
    Program(ProgramFile),
    /// It calls a function.
    Function(Arc<dyn HookBody>),
}

/// The file of a hook that is a program.
#[derive(Debug)]
#[doc(hidden)]
pub struct ProgramFile {
    /// Its place.
    pub path: PathBuf,
    /// Its contents when it was loaded.
    pub source: Source,
}

impl Hook {
    /// The file of a hook that is a program.
    pub fn program(&self) -> Option<&ProgramFile> {
        match &self.body {
            Body::Program(program) => Some(program),
            Body::Function(_) => None,
        }
    }
}

impl std::fmt::Debug for Body {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Program(program) => program.fmt(formatter),
            Self::Function(_) => formatter.write_str("Function"),
        }
    }
}

/// Most characters of a hook's name in the name of a file, which has 255 bytes at most.
const LONGEST_NAME: usize = 150;

/// The hook's name with everything but letters and digits turned into `-`, for file names.
#[doc(hidden)]
pub fn safe_name(name: &str) -> String {
    name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).take(LONGEST_NAME).collect()
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
