//! Packages of operating systems: collected from where a distribution publishes them, with all that they depend on, and listed
//! as a repository. `apt` of this machine does that for any distribution with `.deb` files, in a directory of its own.
//!
//! A package is kept by its SHA-256 beside the content of images.

mod apt;
mod collect;
mod list;

pub(crate) use collect::{Collection, Deb, Work, collect};
pub(crate) use list::{LIST, Listed, Package, entry, read};
