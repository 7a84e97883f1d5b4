//! Container images on the control machine: fetched from registries, stored by digest, pushed into registries.
//!
//! [`Client`](protocol::Client) implements the protocol of registries, `oci-spec` the documents. [`Blobs`] owns the directory of the
//! content.

mod blobs;
mod chart;
pub(crate) mod document;
mod fetch;
mod harbor;
mod layout;
mod login;
mod protocol;
mod push;
mod registries;

pub(crate) use blobs::Blobs;
pub(crate) use chart::ChartBlob;
pub(crate) use document::{Blob, Image, Platform, arch_of_configuration};
pub(crate) use fetch::{Fetch, fetch_blobs, missing, resolve};
pub use layout::{Layout, LayoutImage};
pub use login::stored_logins;
pub use push::{PushImage, PushNews, Pushed, push};
pub(crate) use registries::Registries;
pub use registries::ask_registry;

#[cfg(test)]
mod tests;
