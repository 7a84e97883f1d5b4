//! Published manifests: files with Kubernetes objects, which are the same for every architecture.

use std::collections::BTreeMap;

use kk_config::{ManifestFile, ManifestSource};
use semver::Version;
use serde::Deserialize;

use super::{Catalogue, parse_version};
use crate::{Component, Error, Sha256Sum};

/// The manifests of one component: the parsed form of its file in `artifacts/`, with the placeholders `{v}` and `{file}`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Manifests {
    url: String,
    /// The checksums by version, by the name of the file.
    #[serde(rename = "manifests")]
    pub(super) sums: BTreeMap<String, BTreeMap<Version, Sha256Sum>>,
}

impl Manifests {
    /// The names of the files.
    pub(super) fn files(&self) -> impl Iterator<Item = &str> {
        self.sums.keys().map(String::as_str)
    }

    /// The versions of which every file has a checksum, in ascending order.
    pub(super) fn versions(&self) -> impl Iterator<Item = &Version> {
        let first = self.sums.values().next().into_iter().flat_map(BTreeMap::keys);
        first.filter(|version| self.sums.values().all(|sums| sums.contains_key(version)))
    }
}

impl Catalogue {
    /// The source of a manifest of a component in a version (with or without a leading v).
    pub fn manifest(&self, component: Component, version: &str, file: &str) -> Result<ManifestSource, Error> {
        let version = parse_version(version)
            .ok_or_else(|| Error::InvalidVersion { component, version: version.to_owned() })?;
        let unknown = |known: Vec<String>| {
            let (file, version) = (file.to_owned(), version.to_string());
            Error::UnknownManifest { component, file, version, known }
        };
        let manifests = self.manifests.get(&component).ok_or_else(|| unknown(Vec::new()))?;
        let sums = manifests.sums.get(file).ok_or_else(|| unknown(Vec::new()))?;
        let known = || sums.keys().map(ToString::to_string).collect();
        let sum = sums.get(&version).ok_or_else(|| unknown(known()))?;
        let url = manifests.url.replace("{v}", &version.to_string()).replace("{file}", file);
        Ok(ManifestSource::Published { url, mirror: self.mirror_text.clone(), sha256: sum.to_string() })
    }

    /// All manifests of a component in a version, under their names in bundles.
    pub(crate) fn manifests(&self, component: Component, version: &str) -> Result<Vec<ManifestFile>, Error> {
        let files: Vec<&str> =
            self.manifests.get(&component).into_iter().flat_map(Manifests::files).collect();
        let named = |file: &str| {
            let source = self.manifest(component, version, file)?;
            Ok(ManifestFile { name: name_in_bundle(file, version), source })
        };
        files.into_iter().map(named).collect()
    }
}

/// `calico-v3.31.7.yaml`, from the name of the file and the version.
fn name_in_bundle(file: &str, version: &str) -> String {
    let stem = file.strip_suffix(".yaml").unwrap_or(file);
    format!("{stem}-v{}.yaml", version.strip_prefix('v').unwrap_or(version))
}

/// The version in the name of a component's manifest in a bundle.
pub(crate) fn version_in_bundle(component: Component, name: &str) -> Option<&str> {
    name.strip_prefix(component.name())?.strip_prefix("-v")?.strip_suffix(".yaml")
}
