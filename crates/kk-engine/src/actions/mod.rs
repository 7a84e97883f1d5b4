//! Actions that every module can use. Each is a small builder; no host is touched before the runner applies the action.

mod attributes;
mod block;
mod cluster_identity;
mod command;
mod directory;
mod file;
mod hints;
mod modules;
mod swap;
mod sysctl;
mod unit;
mod upload;
mod user;
mod wait;

pub use block::Block;
pub use cluster_identity::ClusterIdentity;
pub use command::Command;
pub use directory::Directory;
pub use file::File;
pub use modules::KernelModules;
pub use swap::SwapOff;
pub use sysctl::Sysctls;
pub use unit::Unit;
pub use upload::Upload;
pub use user::User;
pub use wait::WaitUntil;

use crate::{Action, Change, Facts};

/// Whether any of these actions has something to do: the condition for [`Unit::force_restart`].
pub fn any_needed(actions: &[Box<dyn Action>], facts: &Facts) -> bool {
    actions.iter().any(|action| action.check(facts).is_needed())
}

/// The change described by these lines; no change without lines.
fn lines(lines: Vec<String>) -> Change {
    if lines.is_empty() { Change::None } else { Change::Needed(lines) }
}
