//! Files that the control machine reads for a run before hosts are probed: addons and ks-installer.

mod addons;
mod installer;

pub(crate) use addons::{OwnAddon, Wanted, left_out, not_fetched, source_in_manifest};
pub(crate) use installer::{Installer, pinned};
