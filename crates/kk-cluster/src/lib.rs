//! All knowledge of Kubernetes on hosts: what is looked at, what is checked, and the modules and pipelines that make it
//! so.
//!
//! The way in is [`Session`]: it loads what is on this machine, asks the hosts once, and builds the plan of a command.

mod cluster_state;
mod error;
mod fetch;
mod images;
mod join;
mod kubeadm;
mod modules;
mod pipelines;
mod precheck;
mod probe;
mod session;
mod target;
mod templates;
#[cfg(test)]
mod testing;
mod vault;
mod yaml;

pub use error::BuildError;
pub use session::{Create, Delete, Probed, Session, Settings};
pub use target::Options;
pub(crate) use target::Target;
pub use templates::{TemplateError, Templates};
