//! What the control machine reads for a run, before hosts are probed: where addons and ks-installer come from.

mod addons;
mod installer;

pub(crate) use addons::{Wanted, left_out, not_fetched, source_in_manifest};
pub(crate) use installer::{Installer, pinned};
