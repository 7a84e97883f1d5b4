//! Reads private keys and reports clearly why a key is unusable, which libssh2 does not.

use std::{
    fs::File,
    io::{self, Read as _},
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use kk_config::{PrivateKey, Secret};

use super::config::home;
use crate::{Error, quote};

/// A key that appears usable.
pub(super) struct Key {
    /// The file, or `inline`.
    pub(super) name: String,
    /// PEM text.
    pub(super) text: Secret,
}

impl Key {
    /// The error for a key that the library refuses.
    pub(super) fn unusable(&self, reason: &str) -> Error {
        unusable(&self.name, &Flaw::Other(reason.to_owned()))
    }
}

/// Reads a key.
pub(super) fn load(key: &PrivateKey, passphrase: Option<&Secret>) -> Result<Key, Error> {
    let (name, text, shared) = match key {
        PrivateKey::Inline(text) => ("inline".to_owned(), text.clone(), None),
        PrivateKey::Path(path) => {
            let file = expand(path);
            let (text, mode) =
                read(&file).map_err(|error| unusable(path, &Flaw::Other(error.to_string())))?;
            (path.clone(), text, mode.map(|mode| (file, mode)))
        }
    };
    if let Some(flaw) = flaw(text.expose(), passphrase.is_some()) {
        return Err(unusable(&name, &flaw));
    }
    if let Some((file, mode)) = shared {
        let reason = format!(
            "other users of this machine can use it (mode {mode:04o}); run: chmod 600 {}",
            quote(&file.display().to_string())
        );
        return Err(unusable(&name, &Flaw::Other(reason)));
    }
    Ok(Key { name, text })
}

/// The text of a file, and its mode if users other than its owner can read or change it. As in OpenSSH, this matters only for
/// files of the current user: the permissions of another user's key are not the current user's decision.
fn read(path: &Path) -> io::Result<(Secret, Option<u32>)> {
    let mut file = File::open(path)?;
    let metadata = file.metadata()?;
    let mut text = String::new();
    file.read_to_string(&mut text)?;
    let is_own = metadata.uid() == rustix::process::getuid().as_raw();
    let mode = metadata.mode() & 0o7777;
    Ok((text.into(), (is_own && mode & 0o077 != 0).then_some(mode)))
}

fn unusable(path: &str, flaw: &Flaw) -> Error {
    let (reason, encrypted) = match flaw {
        Flaw::Encrypted => ("it is encrypted and no passphrase is given", true),
        Flaw::Other(reason) => (reason.as_str(), false),
    };
    Error::Key { path: path.to_owned(), reason: reason.to_owned(), encrypted }
}

/// A reason why a key is unusable.
enum Flaw {
    Encrypted,
    Other(String),
}

/// Expands a leading `~` to the home directory.
fn expand(path: &str) -> PathBuf {
    match path.strip_prefix("~/") {
        Some(rest) => home().join(rest),
        None => path.into(),
    }
}

fn flaw(text: &str, passphrase: bool) -> Option<Flaw> {
    let other = |reason: &str| Some(Flaw::Other(reason.to_owned()));
    let begin = text.lines().find(|line| line.starts_with("-----BEGIN ")).unwrap_or_default();
    if begin.contains("PUBLIC KEY") || text.starts_with("ssh-") || text.starts_with("ecdsa-") {
        return other("it is a public key, not a private one");
    }
    if !begin.contains("PRIVATE KEY") {
        return other("it is not a private key");
    }
    (!passphrase && is_encrypted(begin, text)).then_some(Flaw::Encrypted)
}

/// PEM states it in its header. In OpenSSH's own format the cipher's name follows the magic word `openssh-key-v1\0` (OpenSSH,
/// PROTOCOL.key).
fn is_encrypted(begin: &str, text: &str) -> bool {
    if !begin.contains("OPENSSH") {
        return begin.contains("ENCRYPTED") || text.contains("Proc-Type: 4,ENCRYPTED");
    }
    let body: String = text.lines().filter(|line| !line.starts_with("-----")).map(str::trim).collect();
    let Ok(bytes) = STANDARD.decode(body) else { return false };
    bytes.strip_prefix(b"openssh-key-v1\0").is_some_and(|rest| !rest.starts_with(b"\0\0\0\x04none"))
}
