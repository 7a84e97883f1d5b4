//! Changes of objects that hooks request in `$KUBERNETES_PATCH_PATH`.
//!
//! `parse` checks the whole file before anything is done; `Patcher` does the operations in order.

mod execute;
mod operation;
mod parse;

#[doc(hidden)]
pub use execute::{PatchError, Patcher};
pub use operation::{Action, Operation, Propagation};
#[doc(hidden)]
pub use parse::parse;
