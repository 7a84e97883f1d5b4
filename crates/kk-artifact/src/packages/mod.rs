//! Packages of operating systems: collected from where a distribution publishes them, with all that they depend on, and listed
//! as a repository. `apt` or `dnf` of this machine does that for any release, in a directory of its own.
//!
//! A `.deb` is kept by its SHA-256 beside the content of images. An `.rpm` is kept below `packages/`, because its list
//! may have another kind of sum.

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
    /// As its distribution writes it.
    pub(crate) version: String,
    /// Other names by which it was asked for.
    pub(crate) provides: Vec<String>,
    /// The name of its file.
    pub(crate) file: String,
    pub(crate) size: u64,
    pub(crate) sum: Sha256Sum,
    /// Where it is now.
    pub(crate) path: PathBuf,
}
