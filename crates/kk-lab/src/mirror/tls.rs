//! The lab's own certificate authority, and the registry's certificate by it; made anew with every lab.

use std::fs;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, KeyUsagePurpose};

use crate::image::{unfinished, write_whole};
use crate::{net, paths};

/// Folder that holds `ca.crt` and nothing else, as a cluster file's `certsPath` wants it.
pub(crate) fn ca_folder() -> PathBuf {
    paths::state("ca")
}

/// Certificate and key of the registry.
pub(crate) fn server_files() -> (PathBuf, PathBuf) {
    (paths::state("registry.crt"), paths::state("registry.key"))
}

/// Makes authority and certificate unless they are there.
pub(crate) fn ensure() -> Result<()> {
    let (certificate, key_file) = server_files();
    let authority = ca_folder().join("ca.crt");
    if authority.exists() && certificate.exists() && key_file.exists() {
        return Ok(());
    }
    let mut params = CertificateParams::default();
    params.distinguished_name.push(DnType::CommonName, "kk-lab");
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
    let ca_key = KeyPair::generate()?;
    let ca = params.self_signed(&ca_key)?;
    let key = KeyPair::generate()?;
    let server = CertificateParams::new(vec![net::GATEWAY.to_owned()])?;
    let server = server.signed_by(&key, &Issuer::new(params, ca_key))?;
    write_secret(&key_file, &key.serialize_pem())?;
    write_whole(&certificate, server.pem().as_bytes())?;
    write_whole(&authority, ca.pem().as_bytes())
}

/// Readable by root alone from the first byte, and there whole or not at all.
pub(crate) fn write_secret(path: &Path, text: &str) -> Result<()> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).with_context(|| format!("cannot create {}", folder.display()))?;
    }
    let unfinished = unfinished(path)?;
    let mut options = fs::OpenOptions::new();
    let file = options.write(true).create_new(true).mode(0o600).open(&unfinished);
    file.and_then(|mut file| file.write_all(text.as_bytes()))
        .and_then(|()| fs::rename(&unfinished, path))
        .with_context(|| format!("cannot write {}", path.display()))
}
