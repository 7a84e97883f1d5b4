//! Versions, sources and cached files of the binaries of a cluster.

use std::{
    collections::{BTreeMap, BTreeSet, btree_map::Entry},
    path::PathBuf,
    sync::Arc,
};

use kk_artifact::{
    Address, Artifact, Catalogue, Checksum, Component, Content, LocalFile, Store, StoreSettings, Versions,
    bundle::Bundle, obtain,
};
use kk_config::{Arch, Components, KubeVersion, ManifestSource, Registry, Spec};
use kk_util::sha256;

use kk_engine::{Finding, Severity};

use crate::base::{error::BuildError, supply::PublishedFile};

/// Binaries by component and architecture. The files are known only if an earlier run fetched them.
pub(crate) type Programs = BTreeMap<(Component, Arch), (Artifact, Option<Vec<LocalFile>>)>;

/// Catalogue, versions and store of one command.
pub(crate) struct Artifacts {
    pub versions: Versions,
    pub store: Arc<Store>,
    /// The built-in catalogue and the user's, without the bundle.
    known: Catalogue,
    /// `known` with the checksums of the bundle.
    catalogue: Catalogue,
    bundle: Option<Arc<Bundle>>,
}

impl Artifacts {
    /// Reads the catalogue that the file names, and opens the store. No network.
    pub(crate) fn open(
        spec: &Spec,
        workdir: &std::path::Path,
        bundle: Option<Arc<Bundle>>,
    ) -> Result<Self, BuildError> {
        let mut store = StoreSettings::new(workdir);
        store.ca_file = spec.download.ca_file.as_ref().map(PathBuf::from);
        store.offline = bundle.is_some();
        let known = catalogue(spec)?;
        let versions = choose(spec, &spec.components, bundle.as_deref(), &known)?;
        let catalogue = match &bundle {
            Some(bundle) => bundle.catalogue(known.clone())?,
            None => known.clone(),
        };
        Ok(Self { versions, known, catalogue, store: Arc::new(Store::new(store)?), bundle })
    }

    /// The versions of a cluster with these pins. If there is a bundle, it decides about components without a pin.
    pub(crate) fn choose(&self, spec: &Spec, pinned: &Components) -> Result<Versions, BuildError> {
        choose(spec, pinned, self.bundle.as_deref(), &self.known)
    }

    /// Imports the contents of the bundle into the store, and returns the number of bytes that were new.
    pub(crate) async fn import(&self) -> Result<u64, BuildError> {
        match &self.bundle {
            Some(bundle) => Ok(bundle.import(&self.catalogue, &self.store).await?),
            None => Ok(0),
        }
    }

    /// The artifacts of these components, with their files as far as the store has them already.
    pub(crate) async fn programs(
        &self,
        versions: &Versions,
        wanted: impl IntoIterator<Item = (Component, Arch)>,
    ) -> Result<Programs, BuildError> {
        let mut programs = Programs::new();
        for (component, arch) in wanted {
            if let Entry::Vacant(program) = programs.entry((component, arch)) {
                let artifact = self.catalogue.resolve(component, &versions.of(component), arch)?;
                let files = self.store.cached(&artifact).await;
                program.insert((artifact, files));
            }
        }
        Ok(programs)
    }

    /// The mirror of everything that kk itself installs.
    pub(crate) fn mirror(&self) -> Option<&Address> {
        self.catalogue.mirror()
    }

    /// The content of a published manifest in these versions: from the bundle if there is one, else from the store or its server.
    pub(crate) async fn manifest(
        &self,
        versions: &Versions,
        file: PublishedFile,
        registry: &Registry,
    ) -> Result<Content, kk_artifact::Error> {
        let source = self.catalogue.manifest(file.component, &versions.of(file.component), file.name)?;
        let Some(bundle) = &self.bundle else {
            let manifests = [source.clone()].into();
            let obtained = obtain(&BTreeSet::new(), &manifests, None, registry, &self.store).await;
            let mut obtained =
                obtained.map_err(|errors| errors.into_iter().next().expect("why it failed"))?;
            return Ok(obtained.manifests.remove(&source).expect("all that was requested"));
        };
        let offline = || kk_artifact::Error::Offline { part: format!("manifest {source}") };
        let there = bundle.manifest(&source).ok_or_else(offline)?;
        bundle.check(&source, &there)?;
        // A dry run does not unpack bundles.
        let unpacked = std::fs::read(self.store.blob(&there.digest)).ok();
        match unpacked.filter(|bytes| sha256(bytes) == there.sha256) {
            Some(bytes) => Ok(Content(bytes.into())),
            None => Ok(Content(bundle.read(&there).await?.into())),
        }
    }

    /// The content of a published manifest in these versions, if the store contains it.
    pub(crate) fn manifest_in_store(&self, versions: &Versions, file: PublishedFile) -> Option<Content> {
        let version = versions.of(file.component);
        let source = self.catalogue.manifest(file.component, &version, file.name).ok()?;
        let ManifestSource::Published { sha256: sum, .. } = source else { return None };
        let bytes = std::fs::read(self.store.blob(&sum)).ok()?;
        (sha256(&bytes) == sum).then(|| Content(bytes.into()))
    }

    /// The Kubernetes versions whose binaries are available: in the bundle, else in the catalogue.
    pub(crate) fn kubernetes_versions(&self) -> Vec<KubeVersion> {
        let known =
            || self.catalogue.versions(Component::Kubelet, Arch::Amd64).map(ToString::to_string).collect();
        let versions: Vec<String> =
            self.bundle.as_ref().map_or_else(known, |bundle| bundle.versions(Component::Kubelet));
        versions.iter().filter_map(|version| version.parse().ok()).collect()
    }

    /// Reports artifacts that cannot be downloaded, so that they are known before the first change.
    pub(crate) async fn unreachable(&self, programs: &Programs) -> Vec<Finding> {
        if self.bundle.is_some() {
            return Vec::new();
        }
        let missing: Vec<Artifact> = programs
            .values()
            .filter(|(_, files)| files.is_none())
            .map(|(artifact, _)| artifact.clone())
            .collect();
        let errors = self.store.check_reachable(&missing).await.err().unwrap_or_default();
        let finding = |error: &kk_artifact::Error| Finding {
            severity: Severity::Error,
            host: None,
            message: error.to_string(),
            hint: error.hint().unwrap_or_default(),
        };
        errors.iter().map(finding).collect()
    }

    /// Lists the binaries that are verified by a published checksum, because no catalogue contains one for their version.
    pub(crate) fn notes(&self, programs: &Programs) -> Vec<String> {
        let note = |artifact: &Artifact| match &artifact.checksum {
            Checksum::Published(address) => Some(format!(
                "{artifact}: no catalogue contains its checksum; the checksum published at {address} is used"
            )),
            Checksum::Known(_) if self.known.knows(artifact.component, &artifact.version, artifact.arch) => {
                None
            }
            Checksum::Known(_) => Some(format!(
                "{artifact}: no catalogue contains its checksum; the checksum in the bundle is \
                              used"
            )),
        };
        programs.values().filter_map(|(artifact, _)| note(artifact)).collect()
    }
}

/// The versions of a cluster with these pins, from a bundle where there is one.
pub(crate) fn choose(
    spec: &Spec,
    pinned: &Components,
    bundle: Option<&Bundle>,
    known: &Catalogue,
) -> Result<Versions, BuildError> {
    match bundle {
        Some(bundle) => of_bundle(spec, pinned, bundle, known),
        None => versions(spec, pinned),
    }
}

/// The versions of a cluster with these pins, and the defaults.
pub(crate) fn versions(spec: &Spec, pinned: &Components) -> Result<Versions, BuildError> {
    Versions::for_kubernetes(spec.kubernetes.version, pinned).ok_or_else(|| {
        BuildError::config(
            format!("Kubernetes {} is not supported", spec.kubernetes.version),
            "choose another version",
        )
    })
}

fn catalogue(spec: &Spec) -> Result<Catalogue, BuildError> {
    let mut catalogue = Catalogue::builtin();
    if let Some(path) = &spec.download.catalogue {
        let text = std::fs::read_to_string(path).map_err(|error| {
            BuildError::config(
                format!("cannot read the catalogue {path}: {error}"),
                "correct spec.download.catalogue",
            )
        })?;
        catalogue = catalogue.with_user(path, &text)?;
    }
    match &spec.download.mirror {
        Some(mirror) => Ok(catalogue.with_mirror(mirror)?),
        None => Ok(catalogue),
    }
}

/// The hint for a bundle that lacks something.
pub(crate) const NOT_IN_BUNDLE: &str = "make the bundle from this file (kk create manifest -f FILE, kk artifact export), or use the versions \
     that it contains";

/// The versions of a cluster with these pins. A component without a pin gets the default for its Kubernetes version if the bundle
/// contains that. Otherwise it gets the only version in the bundle, provided that a catalogue knows its checksums: a bundle alone
/// cannot prove that a binary is what its name claims.
fn of_bundle(
    spec: &Spec,
    pinned: &Components,
    bundle: &Bundle,
    known: &Catalogue,
) -> Result<Versions, BuildError> {
    let wanted = versions(spec, pinned)?;
    let mut chosen = pinned.clone();
    for (key, pin) in chosen.iter_mut().filter(|(_, pin)| pin.is_none()) {
        let component = Component::all().find(|component| component.version_key() == key);
        let Some(component) = component else { continue };
        let (default, there) = (wanted.of(component), bundle.versions(component));
        *pin = match &there[..] {
            all if all.contains(&default) => Some(default),
            [only] if bundle.is_known(component, only, known) => Some(only.clone()),
            _ => None,
        };
    }
    versions(spec, &chosen)
}
