//! The lab's own certificate authority, and the registry's certificate by it; new with every lab.

use std::path::PathBuf;

use anyhow::Result;
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, KeyUsagePurpose};

use crate::sys::files::{write_secret, write_whole};
use crate::sys::{net, paths};

/// Directory that holds `ca.crt` and nothing else, as a cluster file's `certsPath` wants it.
pub(crate) fn ca_directory() -> PathBuf {
    paths::state("ca")
}

/// Certificate and key of the registry.
pub(crate) fn server_files() -> (PathBuf, PathBuf) {
    (paths::state("registry.crt"), paths::state("registry.key"))
}

/// Makes authority and certificate unless they are there.
pub(crate) fn ensure() -> Result<()> {
    let (certificate, key_file) = server_files();
    let authority = ca_directory().join("ca.crt");
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
