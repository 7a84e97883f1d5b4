//! Packages of operating systems: collected from a distribution's servers, with all dependencies, and listed as a repository.
//! `apt` or `dnf` on this machine does this for any release, in a separate directory.
//!
//! A `.deb` is stored by its SHA-256 next to the content of images. An `.rpm` is stored below `packages/`, because its list may
//! use another kind of checksum.

mod apt;
mod collect;
mod debs;
mod dnf;
mod list;
mod program;
mod rpms;

use std::path::PathBuf;

pub(crate) use collect::{Collection, Work, collect};
pub(crate) use list::{LIST, Listed, read};
pub(crate) use rpms::LIST as RPM_LIST;

use crate::Sha256Sum;

/// The packages of an operating system and what a package manager needs to find them.
pub(crate) struct Repository {
    /// In the order of their files' names.
    pub(crate) packages: Vec<Package>,
    /// Its lists: path below the directory of the repository, and content.
    pub(crate) lists: Vec<(String, Vec<u8>)>,
}

/// A package that was collected.
pub(crate) struct Package {
    pub(crate) name: String,
    /// In the spelling of its distribution.
    pub(crate) version: String,
    /// Other names by which it was requested.
    pub(crate) provides: Vec<String>,
    /// The name of its file.
    pub(crate) file: String,
    pub(crate) size: u64,
    pub(crate) sum: Sha256Sum,
    /// Its current path.
    pub(crate) path: PathBuf,
}
