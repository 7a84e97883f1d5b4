//! Files that the control machine reads or fetches for a run before hosts are probed: addons, published manifests and
//! ks-installer.

mod addons;
mod installer;
mod published;

pub(crate) use addons::{
    InstalledVersion, OwnAddon, Wanted, left_out, not_fetched, origin_sum, source_in_manifest,
};
pub(crate) use installer::{Installer, pinned};
pub(crate) use published::{Documents, Published, PublishedFile, image_names, rename_images};
