//! Files of this machine: private ones, sums, Base64.

use std::{fmt::Write as _, fs, io::Write as _, os::unix::fs::OpenOptionsExt, path::Path};

use sha2::{Digest, Sha256};

/// Writes a file that only its owner can read: whole or not at all.
pub(crate) fn write_private(path: &Path, text: &str) -> std::io::Result<()> {
    let new = path.with_extension(format!("new-{}", std::process::id()));
    // A leftover of a killed process with the same id must not be opened with wider permissions.
    let _ = fs::remove_file(&new);
    let mut file = fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&new)?;
    file.write_all(text.as_bytes())
        .and_then(|()| file.sync_all())
        .and_then(|()| fs::rename(&new, path))
        .inspect_err(|_| {
            let _ = fs::remove_file(&new);
        })
}

/// SHA-256 in lower-case hex.
pub(crate) fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// Standard Base64 (RFC 4648, section 4).
pub(crate) fn base64(bytes: &[u8]) -> String {
    use base64::Engine as _;
    base64::engine::general_purpose::STANDARD.encode(bytes)
}

/// What standard Base64 stands for; `None` when it is none.
pub(crate) fn from_base64(text: &str) -> Option<Vec<u8>> {
    use base64::Engine as _;
    base64::engine::general_purpose::STANDARD.decode(text).ok()
}
