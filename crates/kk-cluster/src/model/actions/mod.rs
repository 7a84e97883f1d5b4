//! Actions that several capabilities use.

mod for_joined;
mod join;
mod remove_local;

pub(crate) use for_joined::ForJoined;
pub(crate) use join::Join;
pub(crate) use remove_local::RemoveLocal;
