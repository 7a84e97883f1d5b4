//! Unpacks the content of a bundle that is missing in the store, in one pass.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, BufReader, BufWriter, Read, Write as _};
use std::path::{Path, PathBuf};

use super::index::{BLOBS, BundleIndex, CHARTS, FilePart, MANIFESTS, PACKAGES};
use super::{charts, compare, packages, read};
use crate::charts::identity;
use crate::oci::Blobs;
use crate::store::blocking;
use crate::{Catalogue, Error, Sha256Sum, Store, space};

/// Unpacks the parts of a bundle into the store. `catalogue` must know them ([`Catalogue::with_bundle`]). Returns the number of
/// bytes that were missing.
pub async fn import(
    path: &Path,
    index: &BundleIndex,
    catalogue: &Catalogue,
    store: &Store,
) -> Result<u64, Error> {
    let blobs = Blobs::new(store.dir());
    let _alone = blobs.lock().await?;
    let missing = missing(index, catalogue, store, &blobs).await?;
    let (path, expected, dir) = (path.to_owned(), index.clone(), store.dir().to_owned());
    blocking(move || {
        let bytes = if missing.is_empty() { 0 } else { unpack(&path, &expected, &missing, &dir)? };
        let document = |digest: &str| blobs.document(&compare::sum(digest)?);
        let list = |file: &FilePart| blobs.document(&file.sha256.parse().ok()?);
        let chart = |file: &FilePart| {
            let packed = File::open(blobs.path(&file.sha256.parse().ok()?)).ok()?;
            Some(identity(BufReader::new(packed)))
        };
        compare::images(&expected, document)
            .and_then(|()| packages::compare(&expected, list))
            .and_then(|()| charts::compare(&expected, chart))
            .map_err(|reason| super::unusable(&path, reason))?;
        Ok(bytes)
    })
    .await
}

/// The target paths of missing files, by their path in the bundle.
async fn missing(
    index: &BundleIndex,
    catalogue: &Catalogue,
    store: &Store,
    blobs: &Blobs,
) -> Result<BTreeMap<String, PathBuf>, Error> {
    let mut missing = BTreeMap::new();
    for artifact in catalogue.of_bundle(index)? {
        if store.cached(&artifact).await.is_none() {
            missing.insert(format!("programs/{}", artifact.place()), store.dir().join(artifact.place()));
        }
    }
    let (files, blobs) = (index.files.to_vec(), blobs.clone());
    blocking(move || {
        for file in files {
            // Packages, charts and manifests are also stored by their checksums.
            let is_kept =
                [BLOBS, PACKAGES, CHARTS, MANIFESTS].iter().any(|start| file.path.starts_with(start));
            let sum = file.sha256.parse::<Sha256Sum>().ok().filter(|_| is_kept);
            let Some(sum) = sum else { continue };
            if !blobs.is_whole(&sum, file.size)? {
                missing.insert(file.path, blobs.path(&sum));
            }
        }
        Ok(missing)
    })
    .await
}

/// A file that is written but not verified yet. Unless [`Pending::keep`] is called, it is removed.
struct Pending {
    part: PathBuf,
    target: PathBuf,
}

impl Pending {
    fn keep(self) -> io::Result<()> {
        fs::rename(&self.part, &self.target)
    }
}

impl Drop for Pending {
    fn drop(&mut self) {
        // After `keep`, the file is gone already. A file that cannot be removed is overwritten by the next import.
        let _ = fs::remove_file(&self.part);
    }
}

/// Unpacks the missing files below `dir`, if the disk has space for their declared sizes. A file cannot be larger than declared.
fn unpack(
    path: &Path,
    expected: &BundleIndex,
    missing: &BTreeMap<String, PathBuf>,
    dir: &Path,
) -> Result<u64, Error> {
    let declared = missing.keys().filter_map(|name| Some(expected.file(name)?.size));
    space::require(dir, declared.fold(0, u64::saturating_add)).map_err(Error::file("unpack into", dir))?;
    let (mut pending, mut bytes): (Option<Pending>, u64) = (None, 0);
    let walked = read::walk(path, |file, content| {
        // The start of this file shows that the previous file was verified.
        pending.take().map_or(Ok(()), Pending::keep)?;
        let Some(target) = missing.get(&file.path) else { return Ok(()) };
        bytes += file.size;
        pending = Some(take(file, content, target)?);
        Ok(())
    });
    let index = walked?;
    pending.map_or(Ok(()), Pending::keep).map_err(Error::file("unpack", path))?;
    if index == *expected {
        Ok(bytes)
    } else {
        Err(super::unusable(path, "it was replaced while it was read; run again"))
    }
}

fn take(file: &FilePart, content: &mut dyn Read, target: &Path) -> io::Result<Pending> {
    let name = target.file_name().unwrap_or_default().to_string_lossy();
    // Not the name of a partial download, because a download would resume from it.
    let part = target.with_file_name(format!(".{name}.import"));
    if let Some(dir) = target.parent() {
        fs::create_dir_all(dir)?;
    }
    let pending = Pending { part, target: target.to_owned() };
    let mut out = BufWriter::with_capacity(1 << 20, File::create(&pending.part)?);
    io::copy(&mut content.take(file.size), &mut out)?;
    out.flush()?;
    out.get_ref().sync_all()?;
    Ok(pending)
}
