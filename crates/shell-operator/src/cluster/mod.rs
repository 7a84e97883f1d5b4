//! Watching the cluster.
//!
//! Each distinct selection of objects (resource, namespace, labels, fields) has one [`Watch`], however many bindings share it;
//! `watcher` is the task that reads it, and `intake` processes the objects that it reads. A watch keeps of each object only what
//! its bindings need: the object's text if a binding needs objects, the results of their filters, and a version to detect changes
//! by. A [`Monitor`] is one binding's view: it holds back events until the binding's state at start was handed to the hook.

mod api;
mod client;
mod connector;
mod counts;
mod crypto;
#[cfg(test)]
mod fuzz;
mod head;
mod held;
mod hub;
mod intake;
mod limit;
mod members;
mod monitor;
mod namespaces;
mod prune;
mod reader;
mod resources;
mod scan;
mod store;
mod watch;
mod watcher;

pub(crate) use api::chain;
#[doc(hidden)]
pub use api::explain;
#[doc(hidden)]
pub use client::connect;
pub use client::{ClientError, ClientSettings, RateLimit};
pub use crypto::install_crypto_provider;
#[doc(hidden)]
pub use hub::Hub;
#[doc(hidden)]
pub use monitor::{Change, Delivery, Monitor, Sink};
#[doc(hidden)]
pub use resources::{FindError, Resource, Resources};
#[doc(hidden)]
pub use watch::{ListState, Selection, Watch};
