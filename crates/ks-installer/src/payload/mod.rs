//! Reads a payload: a directory with the charts, manifests and component definitions that can be installed.
//!
//! `index.yaml` lists every file with its SHA-256, and `components/<name>.yaml` define the components. Users provide the content;
//! ks-installer contains none. Each read verifies the file, so a file that was changed after the index was written is never
//! applied. [`Payload`] owns the definitions, and the files stay on disk.

mod component;
mod expression;
pub(crate) mod extension;
mod index;
mod release;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

pub use component::{
    Awaited, Component, GONE_WITHIN, Generated, Kept, Overlay, ReadyRule, Refusal, Remove, Requirement,
    Source, Trace,
};
pub use expression::{Expression, WHEN_NEEDED};
pub use index::{Index, build};
pub use release::build_from;

/// A payload with a verified index and verified definitions.
#[derive(Debug)]
pub struct Payload {
    dir: PathBuf,
    index: Index,
    components: BTreeMap<String, Component>,
}

/// Problem of a payload.
#[derive(Debug, thiserror::Error)]
pub enum PayloadError {
    /// A file cannot be read.
    #[error(
        "cannot read {path}: {why}\nhint: a payload is a directory with index.yaml; `ks-installer payload build` makes the index"
    )]
    Read {
        /// Path of the file.
        path: String,
        /// Message of the operating system.
        why: String,
    },
    /// The content of a file has changed since the index was written.
    #[error(
        "{part} is not what index.yaml lists (SHA-256 {found}, listed {listed})\nhint: get the payload again, or `ks-installer payload build` when the change is yours"
    )]
    Sum {
        /// Path of the file.
        part: String,
        /// Checksum of the existing file.
        found: String,
        /// Checksum in the index.
        listed: String,
    },
    /// The index does not list an existing file, or a listed file is missing.
    #[error(
        "{part} is {what}\nhint: get the payload again, or `ks-installer payload build` when the change is yours"
    )]
    Unlisted {
        /// Path of the file.
        part: String,
        /// Which of these two problems.
        what: &'static str,
    },
    /// A payload cannot be built from a release.
    #[error("{0}")]
    Release(String),
    /// A definition is invalid.
    #[error("{part}: {why}")]
    Definition {
        /// Path of the file.
        part: String,
        /// The reason.
        why: String,
    },
}

impl Payload {
    /// Reads a payload and verifies all its files.
    pub fn open(dir: &Path) -> Result<Self, PayloadError> {
        let index = Index::read(dir)?;
        index.verify(dir)?;
        let mut payload = Self { dir: dir.to_owned(), index, components: BTreeMap::new() };
        for part in payload.parts("components") {
            let text = payload.text(&part)?;
            let name = part.trim_start_matches("components/").trim_end_matches(".yaml").to_owned();
            let component = Component::parse(&name, &text)
                .map_err(|why| PayloadError::Definition { part: part.clone(), why })?;
            payload.components.insert(name, component);
        }
        payload.check_graph()?;
        Ok(payload)
    }

    /// Version of the payload.
    pub fn version(&self) -> &str {
        &self.index.version
    }

    /// Version of KubeSphere, for `status.core.version`.
    pub fn kubesphere(&self) -> &str {
        &self.index.kubesphere
    }

    /// All components by name.
    pub fn components(&self) -> &BTreeMap<String, Component> {
        &self.components
    }

    /// Paths of the spec that components read, without the paths that every component can read.
    pub fn known_paths(&self) -> Vec<String> {
        let of = |(name, component): (&String, &Component)| {
            let rotated = component.generated.iter().map(|one| format!("rotate.{name}.{}", one.name));
            component.inputs.iter().cloned().chain(rotated).collect::<Vec<_>>()
        };
        self.components.iter().flat_map(of).collect()
    }

    /// Names of the files below `directory`, in order. The name of a file returns that file.
    pub fn parts(&self, directory: &str) -> Vec<String> {
        let inside = format!("{}/", directory.trim_end_matches('/'));
        let mine = |part: &&String| part.starts_with(&inside) || *part == directory;
        self.index.parts.keys().filter(mine).cloned().collect()
    }

    /// The listed checksums of all files below `directory`.
    pub fn sums(&self, directory: &str) -> Vec<(&str, &str)> {
        let parts = self.parts(directory);
        let sums = self.index.parts.iter().filter(|(part, _)| parts.contains(part));
        sums.map(|(part, sum)| (part.as_str(), sum.as_str())).collect()
    }

    /// Verified text of a file.
    pub fn text(&self, part: &str) -> Result<String, PayloadError> {
        let bytes = self.index.read_part(&self.dir, part)?;
        String::from_utf8(bytes)
            .map_err(|error| PayloadError::Definition { part: part.to_owned(), why: error.to_string() })
    }

    /// Path of a chart after its files are verified.
    pub fn chart(&self, directory: &str) -> Result<PathBuf, PayloadError> {
        for part in self.parts(directory) {
            self.index.read_part(&self.dir, &part)?;
        }
        Ok(self.dir.join(directory))
    }

    /// Checks that dependencies exist and have no cycles, and that sources have files.
    fn check_graph(&self) -> Result<(), PayloadError> {
        for (name, component) in &self.components {
            let wrong = |why| PayloadError::Definition { part: format!("components/{name}.yaml"), why };
            for dependency in component.all_before() {
                if !self.components.contains_key(dependency) {
                    return Err(wrong(format!(
                        "dependsOn, after or kindsOf names '{dependency}', which is no component"
                    )));
                }
            }
            for one in &component.generated {
                let Some(other) = &one.of else { continue };
                let made = self.components.get(other).into_iter().flat_map(|other| &other.generated);
                let is_made = made.filter(|made| made.of.is_none()).any(|made| made.name == one.name);
                if !is_made || !component.depends_on.contains(other) {
                    let why = format!(
                        "generated takes '{}' of '{other}', which does not make it or is not in dependsOn",
                        one.name
                    );
                    return Err(wrong(why));
                }
            }
            if self.reaches(name, name) {
                return Err(wrong(format!("'{name}' depends on itself, by way of its dependencies")));
            }
            if let Some(part) = component.files().into_iter().find(|part| self.parts(part).is_empty()) {
                return Err(wrong(format!("there is no file below '{part}'")));
            }
        }
        Ok(())
    }

    /// Whether `from` depends on `to`, directly or indirectly.
    fn reaches(&self, from: &str, to: &str) -> bool {
        let mut seen = Vec::new();
        let mut next: Vec<&str> = vec![from];
        while let Some(name) = next.pop() {
            let component = self.components.get(name).into_iter();
            for dependency in component.flat_map(Component::all_before) {
                if dependency == to {
                    return true;
                }
                if !seen.contains(dependency) {
                    seen.push(dependency.clone());
                    next.push(dependency);
                }
            }
        }
        false
    }
}

#[cfg(test)]
mod tests;
