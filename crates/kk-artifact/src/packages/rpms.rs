//! The packages of a distribution with `.rpm` files.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use futures::future::{BoxFuture, FutureExt as _};
use kk_config::OperatingSystem;

use super::collect::{AT_ONCE, Collection, sum};
use super::dnf::{Dnf, Header};
use super::{Package, Repository};
use crate::Error;
use crate::store::blocking;

/// The list that names all others.
pub(crate) const LIST: &str = "repodata/repomd.xml";

/// The packages that dnf has chosen.
pub(super) struct Rpms<'a> {
    dnf: Dnf<'a>,
    system: &'a OperatingSystem,
    /// The permanent directory of the files.
    kept: PathBuf,
    /// Their names, sorted.
    files: Vec<String>,
    sizes: BTreeMap<String, u64>,
}

impl<'a> Rpms<'a> {
    /// dnf works in `work`, which must be empty; packages stay in `kept`.
    pub(super) async fn choose(system: &'a OperatingSystem, work: &Path, kept: &Path) -> Result<Self, Error> {
        let dnf = Dnf::new(work, system).await?;
        let files = dnf.resolve(&system.packages).await?;
        let sizes = dnf.sizes(&files).await?.into_iter().collect();
        Ok(Self { dnf, system, kept: kept.to_owned(), files, sizes })
    }

    /// Bytes of a file that must be fetched.
    fn missing_of(&self, file: &String) -> u64 {
        let here = fs::metadata(self.kept.join(file)).map_or(0, |data| data.len());
        self.sizes.get(file).map_or(0, |size| size.saturating_sub(here))
    }

    async fn fetch(&self, came: &(dyn Fn(u64) + Sync)) -> Result<(), Error> {
        for files in self.files.chunks(AT_ONCE) {
            let bytes = files.iter().map(|file| self.missing_of(file)).sum();
            self.dnf.download(files, &self.kept).await?;
            came(bytes);
        }
        self.dnf.verify(&self.paths()).await?;
        self.forget_others().map_err(Error::file("clean", &self.kept))
    }

    fn paths(&self) -> Vec<PathBuf> {
        self.files.iter().map(|file| self.kept.join(file)).collect()
    }

    /// Removes files that are no longer wanted.
    fn forget_others(&self) -> std::io::Result<()> {
        for entry in fs::read_dir(&self.kept)? {
            let entry = entry?;
            let name = entry.file_name().to_string_lossy().into_owned();
            if self.files.binary_search(&name).is_err() {
                fs::remove_file(entry.path())?;
            }
        }
        Ok(())
    }

    async fn repository(&self) -> Result<Repository, Error> {
        let paths = self.paths();
        let lists = self.dnf.lists(&paths).await?;
        let headers = self.dnf.headers(&paths).await?;
        let sums = paths.clone();
        let sums = blocking(move || sums.iter().map(|path| sum(path)).collect::<Result<Vec<_>, _>>()).await?;
        let mut packages = Vec::new();
        for (((file, path), header), sum) in self.files.iter().zip(paths).zip(headers).zip(sums) {
            let size = fs::metadata(&path).map_err(Error::file("look at", &path))?.len();
            let provides = asked_for(&header, &self.system.packages);
            let Header { name, version, .. } = header;
            packages.push(Package { name, version, provides, file: file.clone(), size, sum, path });
        }
        Ok(Repository { packages, lists })
    }
}

impl Collection for Rpms<'_> {
    fn system(&self) -> &OperatingSystem {
        self.system
    }

    fn missing(&self) -> u64 {
        self.files.iter().map(|file| self.missing_of(file)).sum()
    }

    fn fetch<'a>(&'a self, came: &'a (dyn Fn(u64) + Sync)) -> BoxFuture<'a, Result<(), Error>> {
        self.fetch(came).boxed()
    }

    fn repository(&self) -> BoxFuture<'_, Result<Repository, Error>> {
        self.repository().boxed()
    }
}

/// The names by which a package was requested, except its own.
fn asked_for(header: &Header, names: &BTreeSet<String>) -> Vec<String> {
    let provides: BTreeSet<&String> = header.provides.iter().collect();
    provides.into_iter().filter(|name| names.contains(*name) && **name != header.name).cloned().collect()
}
