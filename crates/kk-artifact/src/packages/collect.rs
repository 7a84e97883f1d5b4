//! Collects the packages of an operating system in two steps: the missing packages are known before the first byte is fetched.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use futures::future::BoxFuture;
use kk_config::OperatingSystem;

use super::Repository;
use super::debs::Debs;
use super::rpms::Rpms;
use crate::hashing::Hashing;
use crate::oci::Blobs;
use crate::{Error, Sha256Sum};

/// Packages fetched by one call. After a kill, at most this many must be fetched again.
pub(super) const AT_ONCE: usize = 16;

/// The packages of an operating system, chosen by a package manager on this machine.
pub(crate) trait Collection: Sync {
    /// The system.
    fn system(&self) -> &OperatingSystem;

    /// Bytes to fetch.
    fn missing(&self) -> u64;

    /// Fetches missing packages; `came` receives the number of bytes as they arrive.
    fn fetch<'a>(&'a self, came: &'a (dyn Fn(u64) + Sync)) -> BoxFuture<'a, Result<(), Error>>;

    /// The fetched packages, as a repository.
    fn repository(&self) -> BoxFuture<'_, Result<Repository, Error>>;
}

/// Resolves the packages of each system. Package managers work in `work` as long as the collections exist.
pub(crate) async fn collect<'a>(
    systems: &'a [OperatingSystem],
    work: &'a Work,
    blobs: &'a Blobs,
) -> Result<Vec<Box<dyn Collection + 'a>>, Vec<Error>> {
    let one = async |system: &'a OperatingSystem| {
        let directory = work.directory(system)?;
        let collection: Box<dyn Collection + 'a> = if system.is_rpm() {
            Box::new(Rpms::choose(system, &directory, &work.kept(system)?).await?)
        } else {
            Box::new(Debs::choose(system, &directory, blobs).await?)
        };
        Ok(collection)
    };
    let (mut found, mut errors) = (Vec::new(), Vec::new());
    for result in futures::future::join_all(systems.iter().map(one)).await {
        match result {
            Ok(collection) => found.push(collection),
            Err(error) => errors.push(error),
        }
    }
    if errors.is_empty() { Ok(found) } else { Err(errors) }
}

/// The SHA-256 of a file.
pub(super) fn sum(file: &Path) -> Result<Sha256Sum, Error> {
    let mut hashing = Hashing::new(io::sink());
    File::open(file).and_then(|opened| hashing.copy_from(opened)).map_err(Error::file("read", file))?;
    Ok(hashing.finish().0)
}

/// The working directory of package managers, for this process only. Dropping it removes the directory. The next process removes
/// a directory that a killed process left.
pub(crate) struct Work {
    directory: PathBuf,
    store: PathBuf,
}

impl Work {
    const NAME: &str = ".packages-";

    /// A directory below a store, into which no other process may write now. Removes directories that killed processes left.
    pub(crate) fn new(store: &Path) -> Result<Self, Error> {
        let store = fs::canonicalize(store).map_err(Error::file("look at", store))?;
        let left = fs::read_dir(&store).into_iter().flatten().flatten();
        for entry in left.filter(|entry| entry.file_name().to_string_lossy().starts_with(Self::NAME)) {
            // If a package manager of a killed run still writes there, the removal may fail, which does no harm.
            let _ = fs::remove_dir_all(entry.path());
        }
        Ok(Self { directory: store.join(format!("{}{}", Self::NAME, std::process::id())), store })
    }

    fn directory(&self, system: &OperatingSystem) -> Result<PathBuf, Error> {
        made(self.directory.join(name(system)))
    }

    /// The permanent directory for packages of a system.
    fn kept(&self, system: &OperatingSystem) -> Result<PathBuf, Error> {
        made(self.store.join("packages").join(name(system)))
    }
}

fn name(system: &OperatingSystem) -> String {
    format!("{}-{}-{}", system.id, system.version, system.arch)
}

fn made(dir: PathBuf) -> Result<PathBuf, Error> {
    fs::create_dir_all(&dir).map_err(Error::file("make", &dir))?;
    Ok(dir)
}

impl Drop for Work {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.directory);
    }
}
