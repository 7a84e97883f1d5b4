//! [`Catalogue`]: maps a component in a version to its file and the expected SHA-256.
//!
//! The built-in data is `artifacts/*.yaml` (the format is described in `artifacts/README.md`), compiled in. The user's own
//! checksums override it.

mod builtin;
mod manifests;
mod user;

pub(crate) use manifests::version_in_bundle;
pub use user::merge_catalogues;

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;

use kk_config::{Arch, Secret};
use semver::Version;

use crate::artifact::Content;
use crate::bundle::BundleIndex;
use crate::{Address, Artifact, Checksum, Component, Error, Sha256Sum};
use manifests::Manifests;

/// The checksums of one component.
type Sums = BTreeMap<Arch, BTreeMap<Version, Sha256Sum>>;

/// All data about files that can be downloaded.
#[derive(Debug, Clone)]
pub struct Catalogue {
    entries: BTreeMap<Component, Entry>,
    manifests: BTreeMap<Component, Manifests>,
    mirror: Option<Address>,
    /// The base address of the mirror as the user gave it.
    mirror_text: Option<Secret>,
}

/// One component: the parsed form of its file in `artifacts/`, with the placeholders `{v}` and `{arch}`.
#[derive(Debug, Clone)]
struct Entry {
    url: String,
    content: Content,
    /// Suffix of the file next to it that contains its checksum.
    published: Option<String>,
    sums: Sums,
}

impl Catalogue {
    /// The data that is compiled into kk, with upstream's addresses.
    pub fn builtin() -> Self {
        let (entries, manifests) = (builtin::entries(), builtin::manifests());
        Self { entries, manifests, mirror: None, mirror_text: None }
    }

    /// Overrides checksums with the user's own. `file` is the name in errors, which show every wrong place.
    ///
    /// ```yaml
    /// kubeadm: { amd64: { 1.36.0: <64 hexadecimal digits> } }
    /// ```
    pub fn with_user(mut self, file: &str, text: &str) -> Result<Self, Error> {
        for sum in user::parse(file, text).map_err(Error::Catalogue)? {
            match sum.part {
                Part::Arch(arch) => {
                    let entry =
                        self.entries.get_mut(&sum.component).expect("every program has a built-in entry");
                    entry.sums.entry(arch).or_default().insert(sum.version, sum.sum);
                }
                Part::File(file) => {
                    let manifests =
                        self.manifests.get_mut(&sum.component).expect("every manifest has a built-in entry");
                    manifests.sums.entry(file).or_default().insert(sum.version, sum.sum);
                }
            }
        }
        Ok(self)
    }

    /// Adds the checksums of a bundle, so that its versions are known. `path` is the name in errors.
    ///
    /// A known checksum is not replaced: a bundle with a different file for that version is refused.
    pub fn with_bundle(mut self, path: &Path, bundle: &BundleIndex) -> Result<Self, Error> {
        for part in &bundle.programs {
            let Some((component, version, arch)) = part.identity() else { continue };
            let Some(sum) = bundle.sum(&part.path) else { continue };
            let entry = self.entries.get_mut(&component).expect("every program has a built-in entry");
            let known = entry.sums.entry(arch).or_default().entry(version.clone());
            let differs = *known.or_insert_with(|| sum.clone()) != sum;
            let refuse = |what: &str| {
                let reason = format!("its {component} v{version} for {arch} {what}");
                Err(Error::Bundle { path: path.to_owned(), reason })
            };
            if differs {
                return refuse("is not the file that the catalogue knows");
            }
            if part.path.strip_prefix("programs/")
                != Some(self.resolve(component, &part.version, arch)?.place().as_str())
            {
                return refuse("has a name that the catalogue does not know");
            }
        }
        Ok(self)
    }

    /// The binaries of a bundle that was added to the catalogue. Components that this version of kk does not know are left out.
    pub(crate) fn of_bundle(&self, bundle: &BundleIndex) -> Result<Vec<Artifact>, Error> {
        let known = bundle.programs.iter().filter_map(|part| Some((part, part.identity()?)));
        known.map(|(part, (component, _, arch))| self.resolve(component, &part.version, arch)).collect()
    }

    /// Downloads everything from below `base` instead of from upstream: `https://dl.k8s.io/release/…` becomes
    /// `<base>/dl.k8s.io/release/…`.
    pub fn with_mirror(mut self, base: &str) -> Result<Self, Error> {
        self.mirror = Some(Address::mirror(base)?);
        self.mirror_text = Some(Secret::new(base));
        Ok(self)
    }

    /// The base address of the mirror, if there is one.
    pub fn mirror(&self) -> Option<&Address> {
        self.mirror.as_ref()
    }

    /// The file of a component in a version (with or without a leading v).
    ///
    /// A version without a known checksum is verified by its published checksum, if upstream publishes it and the address is TLS.
    /// A checksum that is transferred as unprotected as the file itself protects against nothing.
    pub fn resolve(&self, component: Component, version: &str, arch: Arch) -> Result<Artifact, Error> {
        let version = parse_version(version)
            .ok_or_else(|| Error::InvalidVersion { component, version: version.to_owned() })?;
        let entry = &self.entries[&component];
        let fill = |text: &str| text.replace("{v}", &version.to_string()).replace("{arch}", arch.as_str());
        let mut address = Address::upstream(&fill(&entry.url));
        if let Some(mirror) = &self.mirror {
            address = address.behind(mirror);
        }
        let content = match &entry.content {
            Content::Members(members) => {
                Content::Members(members.iter().map(|(path, name)| (fill(path), name.clone())).collect())
            }
            other => other.clone(),
        };
        let checksum = match entry.sums.get(&arch).and_then(|sums| sums.get(&version)) {
            Some(sum) => Checksum::Known(sum.clone()),
            None => self.published(component, &version, arch, &address)?,
        };
        Ok(Artifact { component, version, arch, address, checksum, content })
    }

    fn published(
        &self,
        component: Component,
        version: &Version,
        arch: Arch,
        address: &Address,
    ) -> Result<Checksum, Error> {
        let unknown = |reason| {
            Err(Error::UnknownVersion {
                component,
                version: version.to_string(),
                arch,
                reason,
                known: self.nearest(component, version, arch),
            })
        };
        match &self.entries[&component].published {
            None => unknown(None),
            Some(_) if !address.is_tls() => {
                unknown(Some(format!("the one published at {} is not trusted: no TLS", address.host())))
            }
            Some(suffix) => Ok(Checksum::Published(address.beside(suffix))),
        }
    }

    /// All versions with a known checksum, in ascending order. Manifests are the same for every architecture.
    pub fn versions(&self, component: Component, arch: Arch) -> impl Iterator<Item = &Version> {
        let of_program = self.entries.get(&component).and_then(|entry| entry.sums.get(&arch));
        let of_program = of_program.into_iter().flat_map(BTreeMap::keys);
        of_program.chain(self.manifests.get(&component).into_iter().flat_map(Manifests::versions))
    }

    /// The checksum of a component in a version.
    fn sum(&self, component: Component, version: &Version, part: &Part) -> Option<&Sha256Sum> {
        let sums = match part {
            Part::Arch(arch) => self.entries.get(&component)?.sums.get(arch),
            Part::File(file) => self.manifests.get(&component)?.sums.get(file),
        };
        sums?.get(version)
    }

    /// Whether upstream publishes checksums next to the files of a component.
    pub fn has_published(&self, component: Component) -> bool {
        self.entries.get(&component).is_some_and(|entry| entry.published.is_some())
    }

    /// Whether the checksum of a component in a version is known.
    pub fn knows(&self, component: Component, version: &Version, arch: Arch) -> bool {
        self.versions(component, arch).any(|known| known == version)
    }

    /// Up to three known versions on each side of `version`.
    fn nearest(&self, component: Component, version: &Version, arch: Arch) -> Vec<String> {
        const SIDE: usize = 3;
        let known: Vec<_> = self.versions(component, arch).collect();
        let place = known.partition_point(|known| *known < version);
        let range = place.saturating_sub(SIDE)..(place + SIDE).min(known.len());
        known[range].iter().map(ToString::to_string).collect()
    }
}

/// The part of a key that distinguishes the files of one component in one version.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Part {
    /// The architecture of binaries.
    Arch(Arch),
    /// The name of a manifest.
    File(String),
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Arch(arch) => arch.fmt(f),
            Self::File(file) => f.write_str(file),
        }
    }
}

/// Parses a version, with or without a leading v.
pub(crate) fn parse_version(text: &str) -> Option<Version> {
    Version::parse(text.strip_prefix('v').unwrap_or(text)).ok()
}

#[cfg(test)]
mod tests;
