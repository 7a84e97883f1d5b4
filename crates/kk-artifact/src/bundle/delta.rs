//! Deltas: the parts of a bundle that an older bundle, its base, lacks. Merging base and delta restores the bundle, byte by byte.
//!
//! A delta is a tar like a bundle, but begins with `kk-delta.json`, which contains the identity of its base and the index of the
//! whole bundle. The files that the base lacks follow, in the order of that index.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, BufReader, Read, Write as _};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::compare::Documents;
use super::write::{self, Source};
use super::{BundleIndex, FilePart, index, read, unusable};
use crate::{Error, space};

/// The head of a delta.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Delta {
    /// The format of the index: a version of kk that cannot read the bundle cannot read the delta.
    format: u32,
    /// The identity of the base: [`BundleIndex::identity`].
    base: String,
    /// The index of the whole bundle.
    pub(super) index: BundleIndex,
}

impl Delta {
    /// The head of the delta between a base and a bundle.
    pub(super) fn between(base: &BundleIndex, index: BundleIndex) -> Self {
        Self { format: index.format, base: base.identity(), index }
    }

    /// The text as stored in a file.
    pub(super) fn text(&self) -> Vec<u8> {
        let mut text = serde_json::to_vec_pretty(self).expect("plain data");
        text.push(b'\n');
        text
    }

    fn parse(text: &[u8]) -> Result<Self, String> {
        index::check_format(text, index::NEWEST_FORMAT)?;
        let delta: Self = serde_json::from_slice(text).map_err(|error| index::unreadable(&error))?;
        if delta.format != delta.index.format {
            return Err(format!(
                "its format is {}, and that of its index {}",
                delta.format, delta.index.format
            ));
        }
        delta.index.check()?;
        Ok(delta)
    }
}

/// The files of a bundle that a base lacks.
pub(super) fn missing<'a>(
    base: &'a BundleIndex,
    index: &'a BundleIndex,
) -> impl Iterator<Item = &'a FilePart> {
    let there: BTreeMap<&str, &FilePart> = base.files.iter().map(|file| (file.path.as_str(), file)).collect();
    index.files.iter().filter(move |file| there.get(file.path.as_str()) != Some(file))
}

/// Merges a delta with its base into a bundle at `out`, if the bundle's index is right. `wrote` receives the number of bytes as
/// they are packed.
pub fn merge(base: &Path, delta: &Path, out: &Path, wrote: &dyn Fn(u64)) -> Result<BundleIndex, Error> {
    let from = read::index(base)?;
    let parts = Parts::new(out)?;
    // The space for all files and the bundle of them, until the free space was compared with it.
    let declared = Cell::new(None);
    let take = |places: &BTreeMap<String, PathBuf>, file: &FilePart, content: &mut dyn Read| {
        declared.take().map_or(Ok(()), |bytes| space::require(&parts.0, bytes))?;
        let Some(place) = places.get(&file.path) else { return Ok(()) };
        let mut out = File::create(place)?;
        io::copy(&mut content.take(file.size), &mut out)?;
        out.flush()
    };
    let mut places = BTreeMap::new();
    let head = |text: &[u8]| {
        let delta = Delta::parse(text)?;
        if delta.base != from.identity() {
            return Err(format!("it is a delta for another bundle than {}", base.display()));
        }
        // The parts are packed while they are there.
        declared.set(Some(delta.index.size().saturating_mul(2)));
        let missing = missing(&from, &delta.index).cloned().collect();
        Ok((delta, missing))
    };
    let path = delta;
    let delta = read::walk_after(path, index::DELTA_NAME, head, |file, content| {
        places.insert(file.path.clone(), parts.place(&file.path));
        take(&places, file, content)
    })?;
    let mut of_base = BTreeMap::new();
    for file in delta.index.files.iter() {
        if !places.contains_key(&file.path) {
            of_base.insert(file.path.clone(), parts.place(&file.path));
        }
    }
    let read = read::walk(base, |file, content| take(&of_base, file, content))?;
    if read != from {
        return Err(unusable(base, "it was replaced while it was read; run again"));
    }
    parts.compare(&delta.index, path)?;
    let sources: Vec<Source> =
        delta.index.files.iter().map(|file| Source::File(parts.place(&file.path))).collect();
    write::write(out, &delta.index, &sources, wrote)?;
    Ok(delta.index)
}

/// A temporary directory next to the bundle for its files. Dropping it removes the directory. The next merge removes a directory
/// that a killed merge left.
struct Parts(PathBuf);

impl Parts {
    fn new(out: &Path) -> Result<Self, Error> {
        let mut dir = out.as_os_str().to_owned();
        dir.push(".parts");
        let dir = PathBuf::from(dir);
        let made = match fs::remove_dir_all(&dir) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => fs::create_dir_all(&dir),
        };
        made.map_err(Error::file("prepare", &dir))?;
        Ok(Self(dir))
    }

    /// The path for the file with this path in the bundle: all files are directly in this directory.
    fn place(&self, path: &str) -> PathBuf {
        self.0.join(path.replace('/', ","))
    }

    /// Compares the index of the delta at `path` with the documents, some of which are from the base.
    fn compare(&self, index: &BundleIndex, path: &Path) -> Result<(), Error> {
        let mut documents = Documents::default();
        for file in index.files.iter() {
            let place = self.place(&file.path);
            let read =
                File::open(&place).and_then(|opened| documents.read(file, &mut BufReader::new(opened)));
            read.map_err(Error::file("read", &place))?;
        }
        documents.compare(index).map_err(|reason| unusable(path, reason))
    }
}

impl Drop for Parts {
    fn drop(&mut self) {
        // The next merge removes a directory that cannot be removed now.
        let _ = fs::remove_dir_all(&self.0);
    }
}
