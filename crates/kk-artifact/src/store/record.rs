//! [`Record`]: the verified state of an entry in the store, so that it need not be hashed on each run.

use std::fs;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::LocalFile;
use crate::artifact::Content;
use crate::stamp::Stamp;
use crate::{Error, Sha256Sum};

/// Written after verification, next to the file.
#[derive(Serialize, Deserialize)]
pub(super) struct Record {
    /// The checksum of the published file.
    sha256: String,
    stamp: Stamp,
    programs: Vec<Program>,
}

#[derive(Serialize, Deserialize)]
struct Program {
    name: String,
    path: PathBuf,
    sha256: String,
    mode: u32,
    stamp: Stamp,
}

impl Record {
    /// `None` if there is no record, or if it cannot be parsed.
    pub(super) fn read(path: &Path) -> Option<Self> {
        serde_json::from_slice(&fs::read(path).ok()?).ok()
    }

    /// Describes the current files; `programs` were just verified.
    pub(super) fn new(
        dir: &Path,
        published: &Path,
        sum: &Sha256Sum,
        programs: &[LocalFile],
    ) -> Result<Self, Error> {
        let stamp = |path: &Path| Stamp::of(path).map_err(Error::file("look at", path));
        let programs = programs
            .iter()
            .map(|file| {
                Ok(Program {
                    name: file.name.clone(),
                    // Relative, so that the store can be moved.
                    path: file.path.strip_prefix(dir).unwrap_or(&file.path).to_owned(),
                    sha256: file.sha256.clone(),
                    mode: file.mode,
                    stamp: stamp(&file.path)?,
                })
            })
            .collect::<Result<_, Error>>()?;
        Ok(Self { sha256: sum.to_string(), stamp: stamp(published)?, programs })
    }

    /// Writes the record completely or not at all.
    pub(super) fn write(&self, path: &Path) -> Result<(), Error> {
        let part = path.with_extension("json.part");
        let text = serde_json::to_vec_pretty(self).expect("numbers and text only");
        fs::write(&part, text).map_err(Error::file("write", &part))?;
        fs::rename(&part, path).map_err(Error::file("write", path))
    }

    /// The checksum of the published file.
    pub(super) fn sum(&self) -> Option<Sha256Sum> {
        self.sha256.parse().ok()
    }

    /// The binaries, if neither they nor the published file changed since, and if they include all wanted binaries.
    pub(super) fn programs(self, dir: &Path, published: &Path, wanted: &Content) -> Option<Vec<LocalFile>> {
        let unchanged = self.stamp.is_still_that_of(published)
            && self.programs.iter().all(|program| program.stamp.is_still_that_of(&dir.join(&program.path)));
        let has = |name: &str| self.programs.iter().any(|program| program.name == name);
        let complete = match wanted {
            Content::Program(name) => has(name),
            Content::Members(members) => members.iter().all(|(_, name)| has(name)),
            Content::Executables => true,
        };
        (unchanged && complete)
            .then(|| self.programs.into_iter().map(|program| program.found_in(dir)).collect())
    }
}

impl Program {
    fn found_in(self, dir: &Path) -> LocalFile {
        LocalFile {
            name: self.name,
            path: dir.join(self.path),
            sha256: self.sha256,
            size: self.stamp.size,
            mode: self.mode,
        }
    }
}
