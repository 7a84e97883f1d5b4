//! [`Contents`]: the files and images that a Manifest requests.

use std::collections::BTreeSet;

use kk_config::{Arch, ChartSource, Components, ImageName, Manifest, ManifestFile, OperatingSystem};

use crate::{Artifact, Catalogue, Component, Error, Versions};

/// The contents that a bundle must have.
#[derive(Debug, Clone)]
pub struct Contents {
    /// The name of the bundle; may be empty.
    pub name: String,
    /// Architectures of the hosts.
    pub arches: BTreeSet<Arch>,
    /// Published files with binaries.
    pub programs: Vec<Artifact>,
    /// Images by their upstream names.
    pub images: BTreeSet<ImageName>,
    /// Helm charts.
    pub charts: BTreeSet<ChartSource>,
    /// Kubernetes manifests.
    pub manifests: BTreeSet<ManifestFile>,
    /// Operating systems with their packages.
    pub operating_systems: Vec<OperatingSystem>,
}

impl Contents {
    /// The contents that a Manifest requests. Errors: all files for which no SHA-256 is known.
    pub fn of(manifest: &Manifest, catalogue: &Catalogue) -> Result<Self, Vec<Error>> {
        let (mut programs, mut errors) = (Vec::new(), Vec::new());
        for component in Component::programs() {
            for version in versions(manifest, component) {
                for arch in &manifest.arches {
                    match catalogue.resolve(component, &version, *arch) {
                        Ok(artifact) => programs.push(artifact),
                        Err(error) => errors.push(error),
                    }
                }
            }
        }
        let mut manifests = manifest.manifests.clone();
        for component in Component::manifests() {
            for version in versions(manifest, component) {
                match catalogue.manifests(component, &version) {
                    Ok(files) => manifests.extend(files),
                    Err(error) => errors.push(error),
                }
            }
        }
        if !errors.is_empty() {
            return Err(errors);
        }
        let (name, arches) = (manifest.name.clone(), manifest.arches.clone());
        // The bundle does not depend on the order in its Manifest.
        let mut operating_systems = manifest.operating_systems.clone();
        operating_systems.sort();
        let images = manifest.images.clone();
        let charts = manifest.charts.clone();
        Ok(Self { name, arches, programs, images, charts, manifests, operating_systems })
    }
}

/// The versions of a binary. A Manifest of KubeKey has no runc: it gets the version for its newest Kubernetes.
fn versions(manifest: &Manifest, component: Component) -> BTreeSet<String> {
    let key = component.version_key();
    let of_kubernetes = || manifest.kubernetes.iter().map(ToString::to_string).collect();
    match manifest.components.get(key) {
        Some(versions) => versions.clone(),
        None if !Components::KEYS.contains(&key) => of_kubernetes(),
        None if component == Component::Runc => {
            let newest = manifest.kubernetes.last();
            let versions = newest.and_then(|one| Versions::for_kubernetes(*one, &Components::default()));
            versions.map(|versions| versions.of(component)).into_iter().collect()
        }
        None => BTreeSet::new(),
    }
}
