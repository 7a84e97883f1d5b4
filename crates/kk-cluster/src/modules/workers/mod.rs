//! Workers join.

mod join_worker;

use kk_engine::Module;

use crate::Target;

/// Lets every worker in that is not in yet.
pub(crate) fn module(target: &Target) -> Module {
    Module::new("workers", vec![join_worker::task(target)])
}
