//! Charts and manifests on the control machine.

use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::Path;

use kk_config::{ChartSource, ManifestSource};

use super::{Identity, Kept, LARGEST, directory, identity, no_chart, no_file};
use crate::Error;
use crate::oci::Blobs;

/// Stores a chart; a directory is packed.
pub(super) fn keep_chart(source: &ChartSource, path: &str, blobs: &Blobs) -> Result<(Identity, Kept), Error> {
    let (identity, packed) = packed(source, path)?;
    Ok((identity, keep(blobs, &packed)?))
}

/// A packed chart; a directory is packed.
pub(super) fn packed(source: &ChartSource, path: &str) -> Result<(Identity, Vec<u8>), Error> {
    let refuse = |reason: String| no_chart(source, reason, "correct the chart; `helm lint` tells more");
    let at = Path::new(path);
    let data = fs::metadata(at).map_err(|error| no_chart(source, words(&error), NOT_THERE))?;
    if data.is_dir() {
        return directory::pack(at).map_err(refuse);
    }
    let bytes = read(at).map_err(|error| refuse(words(&error)))?;
    Ok((identity(&bytes[..]).map_err(refuse)?, bytes))
}

/// Stores a manifest.
pub(super) fn keep_file(source: &ManifestSource, path: &str, blobs: &Blobs) -> Result<Kept, Error> {
    keep(blobs, &bytes(source, path)?)
}

/// The content of a manifest.
pub(super) fn bytes(source: &ManifestSource, path: &str) -> Result<Vec<u8>, Error> {
    read(Path::new(path)).map_err(|error| no_file(source, words(&error), NOT_THERE))
}

pub(super) fn keep(blobs: &Blobs, bytes: &[u8]) -> Result<Kept, Error> {
    Ok(Kept { sum: blobs.put(bytes)?, size: bytes.len() as u64 })
}

const NOT_THERE: &str = "correct its path; a relative path starts at the working directory of kk";

fn words(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => "there is no such file or directory".to_owned(),
        _ => error.to_string(),
    }
}

fn read(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(path)?.take(LARGEST + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > LARGEST {
        return Err(io::Error::other(format!("it is larger than {} MiB", LARGEST >> 20)));
    }
    Ok(bytes)
}
