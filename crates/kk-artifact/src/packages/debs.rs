//! The packages of a distribution with `.deb` files.

use std::fs;
use std::path::{Path, PathBuf};

use futures::future::{BoxFuture, FutureExt as _};
use kk_config::OperatingSystem;

use super::apt::{Apt, Deb};
use super::collect::{AT_ONCE, Collection, sum};
use super::list::{self, Control, LIST};
use super::program::failed;
use super::{Package, Repository};
use crate::Error;
use crate::oci::Blobs;
use crate::store::blocking;

/// The packages that apt has chosen.
pub(super) struct Debs<'a> {
    system: &'a OperatingSystem,
    chosen: Vec<Deb>,
    apt: Apt<'a>,
    blobs: &'a Blobs,
}

impl<'a> Debs<'a> {
    /// apt works in `work`, which must be empty.
    pub(super) async fn choose(
        system: &'a OperatingSystem,
        work: &Path,
        blobs: &'a Blobs,
    ) -> Result<Self, Error> {
        let apt = Apt::new(work, system).await?;
        let chosen = apt.resolve(&system.packages).await?;
        Ok(Self { system, chosen, apt, blobs })
    }

    fn failed(&self, reason: String) -> Error {
        failed(self.system, reason, "check repository.sources, and run again")
    }

    async fn fetch(&self, came: &(dyn Fn(u64) + Sync)) -> Result<(), Error> {
        let missing: Vec<Deb> =
            self.chosen.iter().filter(|deb| !self.blobs.has(&deb.sum, deb.size)).cloned().collect();
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

    async fn repository(&self) -> Result<Repository, Error> {
        let mut packages = Vec::new();
        for deb in &self.chosen {
            let path = self.blobs.path(&deb.sum);
            let control = Control::parse(&self.apt.fields(&path).await?);
            let control =
                control.ok_or_else(|| self.failed(format!("the package {} lacks a field", deb.name)))?;
            packages.push((control, deb, path));
        }
        packages.sort_by_key(|(control, ..)| control.file_name());
        let text: String = packages.iter().map(|(control, deb, _)| list::entry(control, deb)).collect();
        let package = |(control, deb, path): (Control, &Deb, PathBuf)| Package {
            file: control.file_name(),
            name: control.name,
            version: control.version,
            provides: Vec::new(),
            size: deb.size,
            sum: deb.sum.clone(),
            path,
        };
        let packages = packages.into_iter().map(package).collect();
        Ok(Repository { packages, lists: vec![(LIST.to_owned(), text.into_bytes())] })
    }
}

impl Collection for Debs<'_> {
    fn system(&self) -> &OperatingSystem {
        self.system
    }

    fn missing(&self) -> u64 {
        let missing = self.chosen.iter().filter(|deb| !self.blobs.has(&deb.sum, deb.size));
        missing.map(|deb| deb.size).sum()
    }

    fn fetch<'a>(&'a self, came: &'a (dyn Fn(u64) + Sync)) -> BoxFuture<'a, Result<(), Error>> {
        self.fetch(came).boxed()
    }

    fn repository(&self) -> BoxFuture<'_, Result<Repository, Error>> {
        self.repository().boxed()
    }
}

/// Stores the files that apt has fetched under their checksums. `Some`: this wanted package is not among them.
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
