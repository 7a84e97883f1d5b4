//! [`Difference`]: the parts that one bundle has and another lacks.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use super::{BundleIndex, delta};

/// A part that differs between two bundles.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Changed {
    /// `kubeadm amd64`, `socat debian 12 amd64`, `chart app`, `manifest crds.yaml`, or the name of an image without its tag.
    pub part: String,
    /// Versions or tags that only the older bundle has. If these are equal, shortened digests instead.
    pub old: Vec<String>,
    /// The same for the newer bundle.
    pub new: Vec<String>,
}

/// The difference between two bundles.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Difference {
    /// Every part that differs.
    pub parts: Vec<Changed>,
    /// Bytes of the files that only the newer bundle has.
    pub bytes: u64,
}

impl Difference {
    /// The difference from one bundle to a newer one.
    pub fn between(old: &BundleIndex, new: &BundleIndex) -> Self {
        let (before, after) = (contents(old), contents(new));
        let names: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
        let nothing = BTreeMap::new();
        let changed = |name: &String| {
            let (before, after) = (before.get(name).unwrap_or(&nothing), after.get(name).unwrap_or(&nothing));
            let (old, new) = (only(before, after), only(after, before));
            let is_same = old.is_empty() && new.is_empty();
            (!is_same).then(|| Changed { part: name.clone(), old, new })
        };
        let parts = names.into_iter().filter_map(changed).collect();
        let bytes = delta::missing(old, new).map(|file| file.size).fold(0, u64::saturating_add);
        Self { parts, bytes }
    }
}

/// The versions of each part, and the digests of each version's content.
type Contents = BTreeMap<String, BTreeMap<String, Vec<String>>>;

fn contents(index: &BundleIndex) -> Contents {
    let mut contents = Contents::new();
    for part in &index.programs {
        let sum = index.sum(&part.path).map_or_else(String::new, |sum| sum.to_string());
        let versions = contents.entry(format!("{} {}", part.name, part.arch)).or_default();
        versions.entry(part.version.clone()).or_default().push(sum);
    }
    for part in &index.packages {
        let sum = index.sum(&part.path).map_or_else(String::new, |sum| sum.to_string());
        let name = format!("{} {} {} {}", part.name, part.system, part.system_version, part.arch);
        contents.entry(name).or_default().entry(part.version.clone()).or_default().push(sum);
    }
    let mut others: Vec<(String, &str, &str)> = Vec::new();
    others.extend(
        index.charts.iter().map(|part| (format!("chart {}", part.name), &*part.version, &*part.path)),
    );
    others.extend(index.manifests.iter().map(|part| (format!("manifest {}", part.name), "", &*part.path)));
    for (name, version, path) in others {
        let sum = index.sum(path).map_or_else(String::new, |sum| sum.to_string());
        contents.entry(name).or_default().insert(version.to_owned(), vec![sum]);
    }
    for part in &index.images {
        let (name, version) = match part.name.split_once('@') {
            Some((name, _)) => (name, ""),
            None => part.name.rsplit_once(':').unwrap_or((&part.name, "")),
        };
        let platforms = part.platforms.iter().map(|platform| platform.digest.clone());
        let digests = std::iter::once(part.digest.clone()).chain(platforms).collect();
        contents.entry(name.to_owned()).or_default().insert(version.to_owned(), digests);
    }
    contents
}

/// The versions that only the first has. A version that both have with different content is shown with its digest.
fn only(one: &BTreeMap<String, Vec<String>>, other: &BTreeMap<String, Vec<String>>) -> Vec<String> {
    let mut versions = Vec::new();
    for (version, digests) in one {
        let digest = || digests.first().map_or("", |digest| digest.trim_start_matches("sha256:"));
        let short = || digest().chars().take(12).collect::<String>();
        match other.get(version) {
            Some(same) if same == digests => {}
            Some(_) => versions.push(format!("{version} {}", short()).trim_start().to_owned()),
            None if version.is_empty() => versions.push(short()),
            None => versions.push(version.clone()),
        }
    }
    versions
}
