//! Packages of operating systems in a bundle: each system has a directory with its packages and their list.

use std::collections::BTreeSet;

use futures::future::try_join_all;
use kk_config::{Arch, OperatingSystem};

use super::index::{PACKAGES, packages_directory};
use super::write::Source;
use super::{BundleIndex, ContentFile, FilePart, PackagePart};
use crate::Error;
use crate::oci::Blobs;
use crate::packages::{self, Collection, Deb, LIST, Listed, Package};

/// The packages of a system that were collected.
pub(super) struct Repository {
    directory: String,
    system: OperatingSystem,
    packages: Vec<(Package, Deb)>,
}

impl Repository {
    /// Of all systems.
    pub(super) async fn all(collections: &[Collection<'_>]) -> Result<Vec<Self>, Error> {
        let one = async |collection: &Collection<'_>| {
            let system = collection.system.clone();
            let directory = packages_directory(&system.id, &system.version, system.arch.as_str());
            Ok(Self { directory, system, packages: collection.packages().await? })
        };
        try_join_all(collections.iter().map(one)).await
    }

    /// Its parts of the index, and its files.
    pub(super) fn parts(&self, blobs: &Blobs) -> (Vec<PackagePart>, Vec<(FilePart, Source)>) {
        let list: String = self.packages.iter().map(|(package, deb)| packages::entry(package, deb)).collect();
        let (size, sha256) = (list.len() as u64, kk_util::sha256(&list));
        let path = format!("{}/{LIST}", self.directory);
        let mut files = vec![(FilePart { path, size, sha256 }, Source::Text(list.into_bytes()))];
        let mut parts = Vec::new();
        for (package, deb) in &self.packages {
            let path = format!("{}/{}", self.directory, package.file_name());
            let file = FilePart { path: path.clone(), size: deb.size, sha256: deb.sum.to_string() };
            files.push((file, Source::File(blobs.path(&deb.sum))));
            parts.push(PackagePart {
                system: self.system.id.clone(),
                system_version: self.system.version.clone(),
                arch: self.system.arch.to_string(),
                name: package.name.clone(),
                version: package.version.clone(),
                path,
            });
        }
        (parts, files)
    }
}

/// The packages of a bundle for one operating system.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostPackages {
    /// Their list, by which a package manager finds them.
    pub list: ContentFile,
    /// Each with its file.
    pub packages: Vec<(PackagePart, ContentFile)>,
}

impl HostPackages {
    /// `None`: the bundle has none for it.
    pub(super) fn of(index: &BundleIndex, system: &str, version: &str, arch: Arch) -> Option<Self> {
        let directory = packages_directory(system, version, arch.as_str());
        let content = |path: &str| {
            let FilePart { path, sha256, .. } = index.file(path)?.clone();
            Some(ContentFile { digest: format!("sha256:{sha256}"), path, sha256 })
        };
        let of_system = index.packages.iter().filter(|part| part.directory() == directory);
        let packages: Vec<_> =
            of_system.filter_map(|part| Some((part.clone(), content(&part.path)?))).collect();
        let list = content(&format!("{directory}/{LIST}"))?;
        (!packages.is_empty()).then_some(Self { list, packages })
    }

    /// Whether there is a package with this name.
    pub fn has(&self, name: &str) -> bool {
        self.packages.iter().any(|(part, _)| part.name == name)
    }
}

/// Whether a list of packages lies there.
pub(super) fn is_list(path: &str) -> bool {
    path.starts_with(PACKAGES) && path.ends_with(&format!("/{LIST}"))
}

/// Compares what the index says about packages with their lists, which `read` gives.
pub(super) fn compare(
    index: &BundleIndex,
    read: impl Fn(&FilePart) -> Option<Vec<u8>>,
) -> Result<(), String> {
    for file in index.files.iter().filter(|file| is_list(&file.path)) {
        let directory = file.path.trim_end_matches(&format!("/{LIST}"));
        let text = read(file).and_then(|text| String::from_utf8(text).ok());
        let listed = text.and_then(|text| packages::read(&text));
        let listed = listed.ok_or_else(|| format!("{} is no list of packages", file.path))?;
        let of_index = index.packages.iter().filter(|part| part.directory() == directory);
        let said = of_index.map(|part| Listed {
            name: part.name.clone(),
            version: part.version.clone(),
            file: part.path.rsplit('/').next().unwrap_or_default().to_owned(),
            sha256: index.file(&part.path).map_or_else(String::new, |file| file.sha256.clone()),
        });
        if listed.into_iter().collect::<BTreeSet<_>>() != said.collect() {
            return Err(format!("{} names other packages", file.path));
        }
    }
    Ok(())
}
