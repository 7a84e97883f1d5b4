//! Collects the packages of an operating system, in two steps: what is missing is known before the first byte comes.

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

/// Packages that are fetched by one call: what a kill leaves to be fetched again is not more.
pub(super) const AT_ONCE: usize = 16;

/// The packages of an operating system, chosen by a package manager of this machine.
pub(crate) trait Collection: Sync {
    /// The system.
    fn system(&self) -> &OperatingSystem;

    /// Bytes that are not here.
    fn missing(&self) -> u64;

    /// Fetches what is not here; `came` gets the bytes as they come.
    fn fetch<'a>(&'a self, came: &'a (dyn Fn(u64) + Sync)) -> BoxFuture<'a, Result<(), Error>>;

    /// What was fetched, as a repository.
    fn repository(&self) -> BoxFuture<'_, Result<Repository, Error>>;
}

/// Asks what the packages of each system are. Package managers work in `work` as long as the collections are there.
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

/// The directory in which package managers work, for this process alone. It goes when this goes; what a kill leaves goes with the
/// next one.
pub(crate) struct Work {
    directory: PathBuf,
    store: PathBuf,
}

impl Work {
    const NAME: &str = ".packages-";

    /// Below the directory of a store, which nobody else writes into now.
    pub(crate) fn new(store: &Path) -> Result<Self, Error> {
        let store = fs::canonicalize(store).map_err(Error::file("look at", store))?;
        let left = fs::read_dir(&store).into_iter().flatten().flatten();
        for entry in left.filter(|entry| entry.file_name().to_string_lossy().starts_with(Self::NAME)) {
            // What a package manager of a killed run still writes is in the way of nobody.
            let _ = fs::remove_dir_all(entry.path());
        }
        Ok(Self { directory: store.join(format!("{}{}", Self::NAME, std::process::id())), store })
    }

    fn directory(&self, system: &OperatingSystem) -> Result<PathBuf, Error> {
        made(self.directory.join(name(system)))
    }

    /// Where packages of a system stay.
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
