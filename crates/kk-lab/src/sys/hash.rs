//! SHA-256 in hexadecimal: whole for checksums, short for names in the cache.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use anyhow::{Context, Result};
use kk_util::hex;
use sha2::{Digest, Sha256};

/// The first 12 digits: enough to distinguish recipes.
pub(crate) fn short(digest: impl AsRef<[u8]>) -> String {
    hex(&digest.as_ref()[..6])
}

/// [`short`] of a text.
pub(crate) fn of_text(text: &str) -> String {
    short(Sha256::digest(text))
}

/// Checksum of a file, as upstream publishes it.
pub(crate) fn of_file(path: &Path) -> Result<String> {
    let mut file = File::open(path).with_context(|| format!("cannot read {}", path.display()))?;
    let mut sha = Sha256::new();
    let mut buffer = vec![0; 1 << 20];
    loop {
        match file.read(&mut buffer) {
            Ok(0) => return Ok(hex(sha.finalize())),
            Ok(read) => sha.update(&buffer[..read]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error).with_context(|| format!("cannot read {}", path.display())),
        }
    }
}
