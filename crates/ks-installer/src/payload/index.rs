//! Reads, verifies and writes `index.yaml`, which lists the files of a payload with their SHA-256.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::{Payload, PayloadError};

/// Name of the index file.
const INDEX: &str = "index.yaml";

/// Content of `index.yaml`.
#[derive(Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Index {
    /// Version of the payload.
    pub version: String,
    /// Version of KubeSphere in the payload, such as `v3.4.1`.
    pub kubesphere: String,
    /// SHA-256 of each file by its path relative to the payload.
    pub parts: BTreeMap<String, String>,
}

impl Index {
    pub(super) fn read(dir: &Path) -> Result<Self, PayloadError> {
        let path = dir.join(INDEX);
        let text = fs::read_to_string(&path).map_err(|error| unreadable(&path, &error))?;
        serde_saphyr::from_str(&text)
            .map_err(|error| PayloadError::Definition { part: INDEX.to_owned(), why: error.to_string() })
    }

    /// Checks that every file is listed, every listed file exists, and all checksums match.
    pub(super) fn verify(&self, dir: &Path) -> Result<(), PayloadError> {
        let there = files(dir)?;
        if let Some(part) = there.iter().find(|part| !self.parts.contains_key(*part)) {
            return Err(PayloadError::Unlisted { part: part.clone(), what: "not listed in index.yaml" });
        }
        for part in self.parts.keys() {
            if !there.contains(part) {
                return Err(PayloadError::Unlisted {
                    part: part.clone(),
                    what: "listed in index.yaml and missing",
                });
            }
            self.read_part(dir, part)?;
        }
        Ok(())
    }

    /// Reads a file and verifies its checksum.
    pub(super) fn read_part(&self, dir: &Path, part: &str) -> Result<Vec<u8>, PayloadError> {
        let path = dir.join(part);
        let bytes = fs::read(&path).map_err(|error| unreadable(&path, &error))?;
        let (found, listed) = (kk_util::sha256(&bytes), self.parts.get(part).cloned().unwrap_or_default());
        if found != listed {
            return Err(PayloadError::Sum { part: part.to_owned(), found, listed });
        }
        Ok(bytes)
    }
}

/// Writes `index.yaml` for the files in `dir`, and reads the payload back.
pub fn build(dir: &Path, version: &str, kubesphere: &str) -> Result<Payload, PayloadError> {
    let mut parts = BTreeMap::new();
    for part in files(dir)? {
        let path = dir.join(&part);
        let bytes = fs::read(&path).map_err(|error| unreadable(&path, &error))?;
        parts.insert(part, kk_util::sha256(&bytes));
    }
    let index = Index { version: version.to_owned(), kubesphere: kubesphere.to_owned(), parts };
    let text = serde_saphyr::to_string(&index)
        .map_err(|error| PayloadError::Definition { part: INDEX.to_owned(), why: error.to_string() })?;
    let (path, unfinished) = (dir.join(INDEX), dir.join(".index.yaml.unfinished"));
    let written = fs::write(&unfinished, text).and_then(|()| fs::rename(&unfinished, &path));
    written.map_err(|error| unreadable(&path, &error))?;
    Payload::open(dir)
}

/// All files below `dir` except the index, in order. Links are not allowed in a payload, because they can point outside of it.
fn files(dir: &Path) -> Result<Vec<String>, PayloadError> {
    let (mut found, mut next) = (Vec::new(), vec![dir.to_owned()]);
    while let Some(directory) = next.pop() {
        let entries = fs::read_dir(&directory).map_err(|error| unreadable(&directory, &error))?;
        for entry in entries {
            let entry = entry.map_err(|error| unreadable(&directory, &error))?;
            let (path, kind) =
                (entry.path(), entry.file_type().map_err(|error| unreadable(&entry.path(), &error))?);
            let part = path.strip_prefix(dir).unwrap_or(&path).to_string_lossy().into_owned();
            if kind.is_dir() {
                next.push(path);
            } else if !kind.is_file() {
                return Err(PayloadError::Unlisted { part, what: "no plain file" });
            } else if part != INDEX && !part.ends_with(".unfinished") {
                found.push(part);
            }
        }
    }
    found.sort();
    Ok(found)
}

fn unreadable(path: &Path, error: &std::io::Error) -> PayloadError {
    PayloadError::Read { path: path.display().to_string(), why: error.to_string() }
}
