//! [`Bundle`]: a bundle whose index was read.

use std::path::{Path, PathBuf};

use kk_config::{Arch, ChartSource, ComponentKind, ImageName, ManifestSource};

use super::index::{BundleIndex, blob_path};
use super::{
    ChartPart, FilePart, HostPackages, ImagePart, PlatformPart, ProgramPart, VerifyingKey, import, read,
};
use crate::catalogue::{parse_version, version_in_bundle};
use crate::store::blocking;
use crate::version_list::newest_stable;
use crate::{Catalogue, Component, Error, LayoutImage, Store};

/// A file of an image's content.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct ContentFile {
    /// `sha256:…`; [`Store::blob`] returns its path.
    pub digest: String,
    /// Its path in an image layout.
    pub path: String,
    /// 64 lower-case hexadecimal digits.
    pub sha256: String,
}

/// A bundle whose index was read, so that its contents are known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bundle {
    path: PathBuf,
    index: BundleIndex,
}

impl Bundle {
    /// Reads the index. The origin of the bundle is not verified.
    pub fn open(path: &Path) -> Result<Self, Error> {
        Ok(Self { path: path.to_owned(), index: read::index(path)? })
    }

    /// Reads the index of a bundle that the owner of the key has signed.
    pub fn open_signed(path: &Path, key: &VerifyingKey) -> Result<Self, Error> {
        Ok(Self::with_index(path, key.verify(path)?.index))
    }

    /// A bundle with the given index; nothing is read.
    pub fn with_index(path: &Path, index: BundleIndex) -> Self {
        Self { path: path.to_owned(), index }
    }

    /// The catalogue, extended with the contents of the bundle ([`Catalogue::with_bundle`]).
    pub fn catalogue(&self, known: Catalogue) -> Result<Catalogue, Error> {
        known.with_bundle(&self.path, &self.index)
    }

    /// Unpacks missing content into the store; returns the number of bytes.
    pub async fn import(&self, catalogue: &Catalogue, store: &Store) -> Result<u64, Error> {
        import(&self.path, &self.index, catalogue, store).await
    }

    /// The number of binaries, images, packages, charts and manifests in it.
    pub fn parts(&self) -> usize {
        let BundleIndex { programs, images, packages, charts, manifests, .. } = &self.index;
        programs.len() + images.len() + packages.len() + charts.len() + manifests.len()
    }

    /// Whether it contains the binaries of a component in a version (with or without a leading v).
    pub fn has(&self, component: Component, version: &str, arch: Arch) -> bool {
        let wanted = parse_version(version).map(|version| (component, version, arch));
        wanted.is_some() && self.index.programs.iter().any(|part| part.identity() == wanted)
    }

    /// Whether a catalogue knows the checksums of all binaries in the bundle of a component in a version. The catalogue contains
    /// no images.
    pub fn is_known(&self, component: Component, version: &str, catalogue: &Catalogue) -> bool {
        let parts = self.index.programs_of(component.name()).filter(|part| part.version == version);
        let mut parts = parts.filter_map(ProgramPart::identity);
        parts.all(|(component, version, arch)| catalogue.knows(component, &version, arch))
    }

    /// The versions of a component, without a leading v.
    pub fn versions(&self, component: Component) -> Vec<String> {
        let mut versions: Vec<String> = match component.repository() {
            None if component.kind() == ComponentKind::Manifest => {
                let names = self.index.manifests.iter().map(|part| part.name.as_str());
                names.filter_map(|name| version_in_bundle(component, name)).map(str::to_owned).collect()
            }
            None => self.index.programs_of(component.name()).map(|part| part.version.clone()).collect(),
            Some((repository, prefix)) => {
                let names = self.index.images.iter().filter_map(|part| part.name.parse::<ImageName>().ok());
                let tags = names.filter(|name| name.repository() == repository).filter_map(|name| name.tag);
                tags.filter_map(|tag| tag.strip_prefix(prefix).map(str::to_owned)).collect()
            }
        };
        versions.sort();
        versions.dedup();
        versions
    }

    /// All images, as stored after an import ([`Store::images`]).
    pub fn images(&self) -> Vec<LayoutImage> {
        let image = |part: &ImagePart| {
            Some(LayoutImage { name: part.name.parse().ok()?, digest: part.digest.clone() })
        };
        self.index.images.iter().filter_map(image).collect()
    }

    /// The images that are not components of a cluster, but were added by the user.
    pub fn own_images(&self) -> Vec<ImageName> {
        let of_components: Vec<String> =
            Component::all().filter_map(Component::repository).map(|(repository, _)| repository).collect();
        let names = self.index.images.iter().filter_map(|part| part.name.parse::<ImageName>().ok());
        names.filter(|name| !of_components.contains(&name.repository())).collect()
    }

    /// An image for an architecture.
    pub fn image(&self, name: &ImageName, arch: Arch) -> Option<(&ImagePart, &PlatformPart)> {
        let name = name.to_string();
        let image = self.index.images.iter().find(|image| image.name == name)?;
        Some((image, image.platforms.iter().find(|platform| platform.arch == arch.as_str())?))
    }

    /// The content of an image for one architecture.
    pub fn blobs(&self, platform: &PlatformPart) -> Vec<ContentFile> {
        let digests = std::iter::once(&platform.digest).chain(&platform.blobs);
        let files = digests.filter_map(|digest| Some((digest, self.index.file(&blob_path(digest))?)));
        files
            .map(|(digest, file)| ContentFile {
                digest: digest.clone(),
                path: file.path.clone(),
                sha256: file.sha256.clone(),
            })
            .collect()
    }

    /// The packages for hosts with this operating system. `None`: the bundle has none.
    pub fn packages(&self, system: &str, version: &str, arch: Arch) -> Option<HostPackages> {
        HostPackages::of(&self.index, system, version, arch)
    }

    /// The packed chart in the bundle for a source.
    pub fn chart(&self, source: &ChartSource) -> Option<ContentFile> {
        let bare = |version: &str| version.trim_start_matches('v').to_owned();
        let is_it = |part: &&ChartPart| {
            part.source == source.origin()
                && match source {
                    ChartSource::Repository { name, version, .. } => {
                        part.name == *name && bare(&part.version) == bare(version)
                    }
                    ChartSource::Oci { version, .. } => bare(&part.version) == bare(version),
                    ChartSource::Path(_) => true,
                }
        };
        self.content(&self.index.charts.iter().find(is_it)?.path)
    }

    /// The newest version of a chart in the bundle, for a source without a version.
    pub fn newest_version(&self, source: &ChartSource) -> Option<&str> {
        let ChartSource::Repository { name, .. } = source else { return None };
        let parts =
            self.index.charts.iter().filter(|part| part.source == source.origin() && part.name == *name);
        newest_stable(parts.map(|part| part.version.as_str()))
    }

    /// The manifest in the bundle for a source.
    pub fn manifest(&self, source: &ManifestSource) -> Option<ContentFile> {
        self.content(&self.index.manifests.iter().find(|part| part.source == source.origin())?.path)
    }

    /// Refuses a manifest of the bundle that differs from the file that the catalogue knows.
    pub fn check(&self, source: &ManifestSource, file: &ContentFile) -> Result<(), Error> {
        match source {
            ManifestSource::Published { sha256, .. } if *sha256 != file.sha256 => {
                let reason = format!("its manifest {source} is not the file that the catalogue knows");
                Err(super::unusable(&self.path, reason))
            }
            _ => Ok(()),
        }
    }

    /// Reads one file of a bundle that is not unpacked. This reads and verifies the whole bundle.
    pub async fn read(&self, file: &ContentFile) -> Result<Vec<u8>, Error> {
        let (path, wanted) = (self.path.clone(), file.path.clone());
        blocking(move || {
            let mut found = Vec::new();
            read::walk(&path, |file, content| {
                if file.path == wanted {
                    content.read_to_end(&mut found)?;
                }
                Ok(())
            })?;
            Ok(found)
        })
        .await
    }

    fn content(&self, path: &str) -> Option<ContentFile> {
        let FilePart { path, sha256, .. } = self.index.file(path)?.clone();
        Some(ContentFile { digest: format!("sha256:{sha256}"), path, sha256 })
    }

    /// `index.json` of a layout with these images, each under the name by which a host knows it.
    pub fn layout(&self, images: &[(&PlatformPart, &str)]) -> String {
        self.index.layout(images)
    }
}
