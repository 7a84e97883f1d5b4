//! Packages of operating systems in a bundle: each system has a directory with its packages and their list.

use std::collections::BTreeSet;

use futures::future::try_join_all;
use kk_config::{Arch, OperatingSystem};

use super::index::{PACKAGES, packages_directory};
use super::write::Source;
use super::{BundleIndex, ContentFile, FilePart, PackagePart};
use crate::Error;
use crate::packages::{self, Collection, LIST, Listed};

/// The collected packages of a system.
pub(super) struct Repository {
    system: OperatingSystem,
    content: packages::Repository,
}

impl Repository {
    /// The repositories of all systems.
    pub(super) async fn all(collections: &[Box<dyn Collection + '_>]) -> Result<Vec<Self>, Error> {
        let one = async |collection: &dyn Collection| {
            Ok(Self { system: collection.system().clone(), content: collection.repository().await? })
        };
        try_join_all(collections.iter().map(|collection| one(&**collection))).await
    }

    /// Its entries for the index, and its files.
    pub(super) fn parts(self) -> (Vec<PackagePart>, Vec<(FilePart, Source)>) {
        let OperatingSystem { id, version, arch, .. } = self.system;
        let directory = packages_directory(&id, &version, arch.as_str());
        let (mut parts, mut files) = (Vec::new(), Vec::new());
        for (path, text) in self.content.lists {
            let (path, size, sha256) =
                (format!("{directory}/{path}"), text.len() as u64, kk_util::sha256(&text));
            files.push((FilePart { path, size, sha256 }, Source::Text(text)));
        }
        for package in self.content.packages {
            let path = format!("{directory}/{}", package.file);
            let file = FilePart { path: path.clone(), size: package.size, sha256: package.sum.to_string() };
            files.push((file, Source::File(package.path)));
            parts.push(PackagePart {
                system: id.clone(),
                system_version: version.clone(),
                arch: arch.to_string(),
                name: package.name,
                version: package.version,
                provides: package.provides,
                path,
            });
        }
        (parts, files)
    }
}

/// The packages of a bundle for one operating system.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostPackages {
    /// The lists that a package manager needs: path in the repository, and file.
    pub lists: Vec<(String, ContentFile)>,
    /// Each package with its file.
    pub packages: Vec<(PackagePart, ContentFile)>,
}

impl HostPackages {
    /// `None`: the bundle has no packages for the system.
    pub(super) fn of(index: &BundleIndex, system: &str, version: &str, arch: Arch) -> Option<Self> {
        let directory = packages_directory(system, version, arch.as_str());
        let content = |path: &str| {
            let FilePart { path, sha256, .. } = index.file(path)?.clone();
            Some(ContentFile { digest: format!("sha256:{sha256}"), path, sha256 })
        };
        let of_system = index.packages.iter().filter(|part| part.directory() == directory);
        let packages: Vec<_> =
            of_system.filter_map(|part| Some((part.clone(), content(&part.path)?))).collect();
        let is_package = |path: &str| packages.iter().any(|(part, _)| part.path == path);
        let of_directory = index.files.iter().filter_map(|file| {
            let rest = file.path.strip_prefix(&directory)?.strip_prefix('/')?;
            (!is_package(&file.path)).then_some((rest.to_owned(), content(&file.path)?))
        });
        let lists = of_directory.collect();
        (!packages.is_empty()).then_some(Self { lists, packages })
    }

    /// Whether there is a package with this name, or a package that provides it.
    pub fn has(&self, name: &str) -> bool {
        let is_it = |part: &PackagePart| part.name == name || part.provides.iter().any(|other| other == name);
        self.packages.iter().any(|(part, _)| is_it(part))
    }

    /// Whether they are rpm packages.
    pub fn is_rpm(&self) -> bool {
        self.packages.iter().any(|(part, _)| part.is_rpm())
    }
}

/// Whether a path is the path of a list of `.deb` files. A list of `.rpm` files contains checksums that dnf compares itself.
pub(super) fn is_list(path: &str) -> bool {
    path.starts_with(PACKAGES) && path.ends_with(&format!("/{LIST}"))
}

/// Compares the index's entries for packages with their lists, which `read` returns.
pub(super) fn compare(
    index: &BundleIndex,
    read: impl Fn(&FilePart) -> Option<Vec<u8>>,
) -> Result<(), String> {
    for file in index.files.iter().filter(|file| is_list(&file.path)) {
        let directory = file.path.trim_end_matches(&format!("/{LIST}"));
        let text = read(file).and_then(|text| String::from_utf8(text).ok());
        let listed = text.and_then(|text| packages::read(&text));
        let listed = listed.ok_or_else(|| format!("{} is not a list of packages", file.path))?;
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
