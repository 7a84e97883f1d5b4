//! Collects the packages of an operating system, in two steps: what is missing is known before the first byte comes.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use kk_config::OperatingSystem;

use super::apt::Apt;
use super::list::Package;
use crate::hashing::Hashing;
use crate::oci::Blobs;
use crate::store::blocking;
use crate::{Error, Sha256Sum};

pub(crate) use super::apt::Deb;

/// Packages that are fetched by one call: what a kill leaves to be fetched again is not more.
const AT_ONCE: usize = 16;

/// The packages of an operating system.
pub(crate) struct Collection<'a> {
    pub(crate) system: &'a OperatingSystem,
    debs: Vec<Deb>,
    apt: Apt<'a>,
    blobs: &'a Blobs,
}

/// Asks what the packages of each system are. Apt works in `work` as long as the collections are there.
pub(crate) async fn collect<'a>(
    systems: &'a [OperatingSystem],
    work: &'a Work,
    blobs: &'a Blobs,
) -> Result<Vec<Collection<'a>>, Vec<Error>> {
    let one = async |system: &'a OperatingSystem| {
        let apt = Apt::new(&work.directory(system)?, system).await?;
        let debs = apt.resolve(&system.packages).await?;
        Ok(Collection { system, debs, apt, blobs })
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

impl Collection<'_> {
    /// Bytes that are not here.
    pub(crate) fn missing(&self) -> u64 {
        let missing = self.debs.iter().filter(|deb| !self.blobs.has(&deb.sum, deb.size));
        missing.map(|deb| deb.size).sum()
    }

    /// Fetches what is not here; `came` gets the bytes as they come.
    pub(crate) async fn fetch(&self, came: &(dyn Fn(u64) + Sync)) -> Result<(), Error> {
        let missing: Vec<Deb> =
            self.debs.iter().filter(|deb| !self.blobs.has(&deb.sum, deb.size)).cloned().collect();
        for debs in missing.chunks(AT_ONCE) {
            let files = self.apt.download(debs).await?;
            let (blobs, wanted) = (self.blobs.clone(), debs.to_vec());
            if let Some(deb) = blocking(move || keep(&blobs, &wanted, &files)).await? {
                return Err(self.failed(format!("apt has not fetched {} {}", deb.name, deb.version)));
            }
            came(debs.iter().map(|deb| deb.size).sum());
        }
        Ok(())
    }

    /// Each package with what its control fields say, in the order of the files' names.
    pub(crate) async fn packages(&self) -> Result<Vec<(Package, Deb)>, Error> {
        let mut packages = Vec::new();
        for deb in &self.debs {
            let fields = self.apt.fields(&self.blobs.path(&deb.sum)).await?;
            let package = Package::parse(&fields);
            let package =
                package.ok_or_else(|| self.failed(format!("the package {} lacks a field", deb.name)))?;
            packages.push((package, deb.clone()));
        }
        packages.sort_by_key(|(package, _)| package.file_name());
        Ok(packages)
    }

    fn failed(&self, reason: String) -> Error {
        let hint = "check repository.sources, and run again".to_owned();
        Error::Packages { system: self.system.to_string(), reason, hint }
    }
}

/// Gives the files that apt has fetched their names. `Some`: one that is wanted is not among them.
fn keep(blobs: &Blobs, wanted: &[Deb], files: &[PathBuf]) -> Result<Option<Deb>, Error> {
    for file in files {
        let sum = sum(file)?;
        match wanted.iter().find(|deb| deb.sum == sum) {
            Some(deb) => blobs.keep(file, &deb.sum)?,
            None => fs::remove_file(file).map_err(Error::file("remove", file))?,
        }
    }
    Ok(wanted.iter().find(|deb| !blobs.has(&deb.sum, deb.size)).cloned())
}

fn sum(file: &Path) -> Result<Sha256Sum, Error> {
    let mut hashing = Hashing::new(io::sink());
    File::open(file).and_then(|opened| hashing.copy_from(opened)).map_err(Error::file("read", file))?;
    Ok(hashing.finish().0)
}

/// The directory in which apt works, for this process alone. It goes when this goes; what a kill leaves goes with the next one.
pub(crate) struct Work(PathBuf);

impl Work {
    const NAME: &str = ".apt-";

    /// Below the directory of a store, which nobody else writes into now.
    pub(crate) fn new(store: &Path) -> Result<Self, Error> {
        let store = fs::canonicalize(store).map_err(Error::file("look at", store))?;
        let left = fs::read_dir(&store).into_iter().flatten().flatten();
        for entry in left.filter(|entry| entry.file_name().to_string_lossy().starts_with(Self::NAME)) {
            // What apt of a killed run still writes is in the way of nobody.
            let _ = fs::remove_dir_all(entry.path());
        }
        Ok(Self(store.join(format!("{}{}", Self::NAME, std::process::id()))))
    }

    fn directory(&self, system: &OperatingSystem) -> Result<PathBuf, Error> {
        let dir = self.0.join(format!("{}-{}-{}", system.id, system.version, system.arch));
        fs::create_dir_all(&dir).map_err(Error::file("make", &dir))?;
        Ok(dir)
    }
}

impl Drop for Work {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}
