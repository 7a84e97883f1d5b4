//! The programs of a cluster: which versions, where they come from, and which of them are on this machine already.

use std::{
    collections::{BTreeMap, btree_map::Entry},
    path::PathBuf,
    sync::Arc,
};

use kk_artifact::{Artifact, Catalogue, Checksum, Component, LocalFile, Store, StoreSettings, Versions};
use kk_config::{Arch, Components, Spec};

use kk_engine::{Finding, Severity};

use crate::BuildError;

/// Programs by component and architecture. The files are known only when they were fetched by an earlier run.
pub(crate) type Programs = BTreeMap<(Component, Arch), (Artifact, Option<Vec<LocalFile>>)>;

/// Catalogue, versions and store of one command.
pub(crate) struct Artifacts {
    pub versions: Versions,
    pub store: Arc<Store>,
    catalogue: Catalogue,
}

impl Artifacts {
    /// Reads the catalogue that the file names, and opens the store. No network.
    pub(crate) fn open(spec: &Spec, workdir: &std::path::Path) -> Result<Self, BuildError> {
        let versions = versions(spec, &spec.components)?;
        let mut store = StoreSettings::new(workdir);
        store.ca_file = spec.download.ca_file.as_ref().map(PathBuf::from);
        Ok(Self { versions, catalogue: catalogue(spec)?, store: Arc::new(Store::new(store)?) })
    }

    /// The artifacts of these components, with those files that are here already.
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

    /// What cannot be downloaded is known before the first change.
    pub(crate) async fn unreachable(&self, programs: &Programs) -> Vec<Finding> {
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
}

/// The versions of a cluster with these pins.
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

/// Programs that are verified by a sum that is published with the file, because no catalogue knows their version.
pub(crate) fn published(programs: &Programs) -> Vec<String> {
    programs
        .values()
        .filter_map(|(artifact, _)| match &artifact.checksum {
            Checksum::Published(address) => Some(format!(
                "{artifact}: no catalogue knows its sum; the one published at {address} is used"
            )),
            Checksum::Known(_) => None,
        })
        .collect()
}
