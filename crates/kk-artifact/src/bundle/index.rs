//! [`BundleIndex`]: `kk-bundle.json`, the first file of a bundle.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Deref;

use kk_config::{Arch, ImageName};
use semver::Version;
use serde::{Deserialize, Serialize, Serializer};

use super::sbom;
use crate::catalogue::parse_version;
use crate::packages::{LIST, RPM_LIST};
use crate::{Component, Sha256Sum};

/// The name of the index in the bundle.
pub(super) const NAME: &str = "kk-bundle.json";
/// The first file of a delta.
pub(super) const DELTA_NAME: &str = "kk-delta.json";
/// The index of the image layout.
pub(super) const LAYOUT_INDEX: &str = "index.json";
/// The format of a bundle that contains only binaries and images. Every version of kk reads it.
const FORMAT: u32 = 1;
/// The format of a bundle with `.deb` packages, but without charts and manifests.
const FORMAT_WITH_PACKAGES: u32 = 2;
/// The format of a bundle with `.rpm` packages, charts or manifests. This is the newest format that this version of kk reads.
pub(super) const NEWEST_FORMAT: u32 = 3;
/// Longest path for which the simplest form of tar has space.
const LONGEST_PATH: usize = 100;

/// The contents of a bundle.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct BundleIndex {
    /// 3 if it contains `.rpm` packages, charts or manifests; otherwise 2 if it contains packages; otherwise 1.
    pub format: u32,
    /// The name of its Manifest; may be empty.
    pub name: String,
    /// Binaries for hosts.
    pub programs: Vec<ProgramPart>,
    /// Container images.
    pub images: Vec<ImagePart>,
    /// Packages of operating systems.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub packages: Vec<PackagePart>,
    /// Helm charts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub charts: Vec<ChartPart>,
    /// Kubernetes manifests.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub manifests: Vec<ManifestPart>,
    /// Every file after the index, in the order of the bundle.
    pub files: FileParts,
}

/// A published file with binaries.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct ProgramPart {
    /// The name of its component.
    pub name: String,
    /// Without a leading v.
    pub version: String,
    /// `amd64` or `arm64`.
    pub arch: String,
    /// Its file.
    pub path: String,
}

/// A container image.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct ImagePart {
    /// Its upstream name.
    pub name: String,
    /// `sha256:…` of its index, or of its manifest if it has no index.
    pub digest: String,
    /// The media type of that document.
    pub media_type: String,
    /// The architectures for which it is present.
    pub platforms: Vec<PlatformPart>,
}

/// An image for one architecture.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct PlatformPart {
    /// `amd64` or `arm64`.
    pub arch: String,
    /// `sha256:…` of its manifest.
    pub digest: String,
    /// The media type of that document.
    pub media_type: String,
    /// `sha256:…` of configuration and layers.
    pub blobs: Vec<String>,
}

/// A package of an operating system.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct PackagePart {
    /// `ID` of the system's os-release: `debian`.
    pub system: String,
    /// `VERSION_ID` of the system's os-release: `12`.
    pub system_version: String,
    /// Architecture of the hosts: `amd64` or `arm64`.
    pub arch: String,
    /// `socat`
    pub name: String,
    /// In the spelling of its distribution.
    pub version: String,
    /// Other names by which the Manifest or kk requests it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub provides: Vec<String>,
    /// Its file.
    pub path: String,
}

impl PackagePart {
    /// Whether it is a package of rpm.
    pub(super) fn is_rpm(&self) -> bool {
        self.path.strip_suffix(".rpm").is_some()
    }

    /// The directory of its system's packages and their list.
    pub(super) fn directory(&self) -> String {
        packages_directory(&self.system, &self.system_version, &self.arch)
    }
}

/// The directory of a system's packages.
pub(super) fn packages_directory(system: &str, version: &str, arch: &str) -> String {
    format!("{PACKAGES}{system}/{version}/{arch}")
}

/// A helm chart.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct ChartPart {
    /// The name in its `Chart.yaml`.
    pub name: String,
    /// The version in its `Chart.yaml`.
    pub version: String,
    /// The URL of its repository, `oci://registry/path`, or its path on the machine where the bundle was exported.
    pub source: String,
    /// Its file.
    pub path: String,
}

/// A file with Kubernetes objects.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct ManifestPart {
    /// Its name in the Manifest.
    pub name: String,
    /// Its URL, or its path on the machine where the bundle was exported.
    pub source: String,
    /// Its file.
    pub path: String,
}

/// A file of a bundle.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FilePart {
    /// Its path in the bundle.
    pub path: String,
    /// Bytes.
    pub size: u64,
    /// 64 lower-case hexadecimal digits.
    pub sha256: String,
}

/// The files of a bundle in their order. A file is found by its path without a search: an index may name a hundred thousand.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(from = "Vec<FilePart>")]
pub struct FileParts {
    list: Vec<FilePart>,
    /// The positions in the list.
    places: BTreeMap<String, usize>,
}

impl FileParts {
    /// Adds a file at the end.
    pub fn push(&mut self, file: FilePart) {
        self.places.entry(file.path.clone()).or_insert(self.list.len());
        self.list.push(file);
    }

    /// The file with this path.
    pub fn of(&self, path: &str) -> Option<&FilePart> {
        self.list.get(*self.places.get(path)?)
    }
}

impl FromIterator<FilePart> for FileParts {
    fn from_iter<T: IntoIterator<Item = FilePart>>(files: T) -> Self {
        let mut parts = Self::default();
        files.into_iter().for_each(|file| parts.push(file));
        parts
    }
}

impl From<Vec<FilePart>> for FileParts {
    fn from(files: Vec<FilePart>) -> Self {
        files.into_iter().collect()
    }
}

impl Deref for FileParts {
    type Target = [FilePart];

    fn deref(&self) -> &Self::Target {
        &self.list
    }
}

impl Serialize for FileParts {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.list.serialize(serializer)
    }
}

impl BundleIndex {
    /// Parses an index and checks that it is consistent, so that callers can rely on it. Errors state the reason.
    pub(super) fn parse(bytes: &[u8]) -> Result<Self, String> {
        check_format(bytes, NEWEST_FORMAT)?;
        let index: Self = serde_json::from_slice(bytes).map_err(|error| unreadable(&error))?;
        index.check()?;
        Ok(index)
    }

    /// The format that the content requires, so that an older version of kk refuses a bundle that it would not understand.
    pub(super) fn needed_format(&self) -> u32 {
        let has_rpm = self.packages.iter().any(PackagePart::is_rpm);
        if has_rpm || !self.charts.is_empty() || !self.manifests.is_empty() {
            NEWEST_FORMAT
        } else if self.packages.is_empty() {
            FORMAT
        } else {
            FORMAT_WITH_PACKAGES
        }
    }

    /// The text as stored in a bundle.
    pub(super) fn text(&self) -> Vec<u8> {
        let mut text = serde_json::to_vec_pretty(self).expect("plain data");
        text.push(b'\n');
        text
    }

    /// The SHA-256 of its text: bundles with the same content have the same identity.
    pub(super) fn identity(&self) -> String {
        kk_util::sha256(self.text())
    }

    /// Checks the index, including that every text may be shown on a terminal.
    pub(super) fn check(&self) -> Result<(), String> {
        if self.format != self.needed_format() {
            return Err(format!("its format {} does not match its content", self.format));
        }
        self.check_words()?;
        let mut paths = BTreeSet::new();
        for file in self.files.iter() {
            if !is_path(&file.path) {
                return Err(format!("`{}` cannot be a path in a bundle", file.path.escape_debug()));
            }
            if file.sha256.parse::<Sha256Sum>().is_err() {
                return Err(format!("the index has no SHA-256 for {}", file.path));
            }
            if !paths.insert(file.path.as_str()) {
                return Err(format!("{} is there twice", file.path));
            }
            if file.path.strip_prefix(BLOBS).is_some_and(|digits| digits != file.sha256) {
                return Err(format!("{} has another SHA-256", file.path));
            }
        }
        let there = |path: &str, of: &str| {
            let missing = || format!("{} is missing, a part of {of}", path.escape_debug());
            paths.contains(path).then_some(()).ok_or_else(missing)
        };
        for program in &self.programs {
            there(&program.path, &program.name)?;
        }
        for package in &self.packages {
            let (path, directory) = (&package.path, package.directory());
            if path.rsplit_once('/').is_none_or(|(place, _)| place != directory) {
                return Err(format!("{} lies elsewhere than in {directory}", path.escape_debug()));
            }
            there(path, &package.name)?;
            let list = if package.is_rpm() { RPM_LIST } else { LIST };
            there(&format!("{directory}/{list}"), &package.name)?;
        }
        for ChartPart { name, version, path, .. } in &self.charts {
            if *path != format!("{CHARTS}{name}-{version}.tgz") {
                return Err(format!("{} cannot be the chart {name} {version}", path.escape_debug()));
            }
            there(path, name)?;
        }
        for ManifestPart { name, path, .. } in &self.manifests {
            if *path != format!("{MANIFESTS}{name}") {
                return Err(format!("{} cannot be the manifest {name}", path.escape_debug()));
            }
            there(path, name)?;
        }
        for image in &self.images {
            image
                .name
                .parse::<ImageName>()
                .map_err(|_| format!("`{}` is no image", image.name.escape_debug()))?;
            there(&blob_path(&image.digest), &image.name)?;
            for platform in &image.platforms {
                there(&blob_path(&platform.digest), &image.name)?;
                platform.blobs.iter().try_for_each(|blob| there(&blob_path(blob), &image.name))?;
            }
        }
        Ok(())
    }

    fn check_words(&self) -> Result<(), String> {
        let refuse = |text: &str, what: &str| format!("`{}` cannot be {what}", text.escape_debug());
        let word = |text: &str, more: &str, what: &str| {
            let fits = |c: char| c.is_ascii_alphanumeric() || "-_.+".contains(c) || more.contains(c);
            (!text.is_empty() && text.chars().all(fits)).then_some(()).ok_or_else(|| refuse(text, what))
        };
        if self.name.contains(char::is_control) {
            return Err(refuse(&self.name, "the name of a bundle"));
        }
        for program in &self.programs {
            word(&program.name, "", "the name of a program")?;
            word(&program.version, "", "the version of a program")?;
            word(&program.arch, "", "the architecture of a program")?;
        }
        for package in &self.packages {
            word(&package.system, "", "an operating system")?;
            word(&package.system_version, "", "the version of an operating system")?;
            word(&package.arch, "", "the architecture of a package")?;
            word(&package.name, "", "the name of a package")?;
            word(&package.version, ":~^", "the version of a package")?;
            package.provides.iter().try_for_each(|name| word(name, "", "the name of a package"))?;
        }
        let origin = |text: &str| {
            let is_plain = !text.is_empty() && !text.contains(char::is_control);
            is_plain.then_some(()).ok_or_else(|| refuse(text, "where a part comes from"))
        };
        for chart in &self.charts {
            word(&chart.name, "", "the name of a chart")?;
            word(&chart.version, "", "the version of a chart")?;
            origin(&chart.source)?;
        }
        for manifest in &self.manifests {
            word(&manifest.name, "", "the name of a manifest")?;
            origin(&manifest.source)?;
        }
        for image in &self.images {
            word(&image.media_type, "/", "the type of an image")?;
            for platform in &image.platforms {
                word(&platform.arch, "", "the architecture of an image")?;
                word(&platform.media_type, "/", "the type of an image")?;
            }
        }
        Ok(())
    }

    /// The files with the binaries of this component.
    pub fn programs_of(&self, name: &str) -> impl Iterator<Item = &ProgramPart> {
        self.programs.iter().filter(move |part| part.name == name)
    }

    /// Bytes of all files.
    pub fn size(&self) -> u64 {
        self.files.iter().map(|file| file.size).fold(0, u64::saturating_add)
    }

    /// The entry of a file.
    pub fn file(&self, path: &str) -> Option<&FilePart> {
        self.files.of(path)
    }
}

impl BundleIndex {
    /// The checksum of a file.
    pub(crate) fn sum(&self, path: &str) -> Option<Sha256Sum> {
        self.file(path)?.sha256.parse().ok()
    }
}

impl ProgramPart {
    /// Its component, version and architecture, if this version of kk knows the component.
    pub(crate) fn identity(&self) -> Option<(Component, Version, Arch)> {
        Some((Component::program(&self.name)?, parse_version(&self.version)?, Arch::from_name(&self.arch)?))
    }
}

/// Refuses a format of a newer version of kk, before anything else is parsed.
pub(super) fn check_format(bytes: &[u8], newest: u32) -> Result<(), String> {
    #[derive(Deserialize)]
    struct Format {
        format: u32,
    }
    let Format { format } = serde_json::from_slice(bytes).map_err(|error| unreadable(&error))?;
    if format > newest {
        return Err(format!("its format is {format}, and this program knows formats up to {newest}"));
    }
    Ok(())
}

/// The error may quote the text.
pub(super) fn unreadable(error: &serde_json::Error) -> String {
    format!("its index cannot be read: {}", error.to_string().replace(char::is_control, "?"))
}

/// The directory of packages of operating systems.
pub(super) const PACKAGES: &str = "packages/";

/// The directory of helm charts.
pub(super) const CHARTS: &str = "charts/";

/// The directory of Kubernetes manifests.
pub(super) const MANIFESTS: &str = "manifests/";

/// The directory of the content of images.
pub(super) const BLOBS: &str = "blobs/sha256/";

/// The path of the content with this digest.
pub(super) fn blob_path(digest: &str) -> String {
    format!("{BLOBS}{}", digest.strip_prefix("sha256:").unwrap_or(digest))
}

/// A package or a list: `SYSTEM/VERSION/ARCH/FILE`, or `…/repodata/FILE`.
fn is_in_repository(rest: &str) -> bool {
    let parts: Vec<&str> = rest.split('/').collect();
    parts.len() == 4 || (parts.len() == 5 && parts[3] == "repodata")
}

/// Whether a path is permitted: it must not leave its directory, contain hidden files, or be too long.
fn is_path(path: &str) -> bool {
    let part = |part: &str| {
        let fits = |c: u8| c.is_ascii_alphanumeric() || b"-_.+~^".contains(&c);
        !part.is_empty() && !part.starts_with('.') && part.bytes().all(fits)
    };
    let place = path == "oci-layout"
        || path == LAYOUT_INDEX
        || path == sbom::NAME
        || path.strip_prefix(BLOBS).is_some_and(|digits| digits.parse::<Sha256Sum>().is_ok())
        || path.strip_prefix("programs/").is_some_and(|rest| rest.split('/').count() == 4)
        || path.strip_prefix(PACKAGES).is_some_and(is_in_repository)
        || [CHARTS, MANIFESTS]
            .iter()
            .any(|start| path.strip_prefix(start).is_some_and(|rest| !rest.contains('/')));
    place && path.len() <= LONGEST_PATH && path.split('/').all(part)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_keep_their_order_and_are_found_by_their_paths() {
        let file = |path: &str, size| FilePart { path: path.to_owned(), size, sha256: "0".repeat(64) };
        let mut files = FileParts::from(vec![file("b", 1), file("a", 2), file("b", 3)]);
        files.push(file("c", 4));
        let text = serde_json::to_string(&files).unwrap();
        assert!(text.starts_with(r#"[{"path":"b""#), "{text}");
        assert_eq!(serde_json::from_str::<FileParts>(&text).unwrap(), files);
        assert_eq!(files.iter().map(|file| file.size).collect::<Vec<_>>(), [1, 2, 3, 4]);
        // An index with a path twice is refused later.
        for (path, size) in [("a", Some(2)), ("b", Some(1)), ("c", Some(4)), ("d", None)] {
            assert_eq!(files.of(path).map(|file| file.size), size, "{path}");
        }
    }
}
