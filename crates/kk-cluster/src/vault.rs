//! The vault: certificates and keys that live on the control machine, below `kubekey/<cluster>/pki`.
//!
//! It owns the CA of etcd. Everything is ECDSA P-256 and valid for ten years, as KubeKey's are. What the vault does not
//! hold yet is made in memory when it is asked for; only [`Vault::save`] writes, so a dry run leaves no trace.

use std::{
    collections::BTreeMap,
    fmt::Write as _,
    fs,
    io::Write as _,
    os::unix::fs::{DirBuilderExt, OpenOptionsExt},
    path::{Path, PathBuf},
};

use kk_config::{Host, Secret};
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose, SanType,
};
use sha2::{Digest, Sha256};
use time::{Duration, OffsetDateTime};

/// Ten years, in days.
const VALID_DAYS: i64 = 3650;

/// The vault cannot be read or written, or holds something that is no certificate.
#[derive(Debug, thiserror::Error)]
#[error("cannot use {path}: {reason}")]
pub(crate) struct VaultError {
    /// File or folder.
    pub path: String,
    /// What is wrong with it.
    pub reason: String,
}

/// A certificate with its key, both PEM.
#[derive(Clone)]
pub(crate) struct Pair {
    /// The certificate.
    pub cert: String,
    /// Its private key.
    pub key: Secret,
}

/// Certificates and keys of one cluster's etcd.
pub(crate) struct Vault {
    folder: PathBuf,
    ca: Pair,
    pairs: BTreeMap<String, Pair>,
}

impl Vault {
    /// Opens the vault in `folder` (`…/pki/etcd`) and makes, in memory, what it lacks for these hosts.
    ///
    /// `members` get a server and peer certificate, `clients` (the control planes) one for the API server.
    pub(crate) fn open(folder: &Path, members: &[&Host], clients: &[&Host]) -> Result<Self, VaultError> {
        let ca = match read_pair(folder, "ca")? {
            Some(pair) => pair,
            None => make_ca(folder)?,
        };
        let mut vault = Self { folder: folder.to_owned(), ca, pairs: BTreeMap::new() };
        for host in members {
            vault.ensure(&member_name(&host.name), || member_params(host))?;
        }
        for host in clients {
            vault.ensure(&client_name(&host.name), || client_params(host))?;
        }
        Ok(vault)
    }

    fn ensure(
        &mut self,
        name: &str,
        params: impl FnOnce() -> Result<CertificateParams, rcgen::Error>,
    ) -> Result<(), VaultError> {
        let pair = match read_pair(&self.folder, name)? {
            Some(pair) => pair,
            None => self.issue(params).map_err(|error| self.error(name, &error))?,
        };
        self.pairs.insert(name.to_owned(), pair);
        Ok(())
    }

    fn issue(
        &self,
        params: impl FnOnce() -> Result<CertificateParams, rcgen::Error>,
    ) -> Result<Pair, rcgen::Error> {
        let issuer = Issuer::from_ca_cert_pem(&self.ca.cert, KeyPair::from_pem(self.ca.key.expose())?)?;
        let key = KeyPair::generate()?;
        let cert = params()?.signed_by(&key, &issuer)?;
        Ok(Pair { cert: cert.pem(), key: Secret::new(key.serialize_pem()) })
    }

    fn error(&self, name: &str, reason: &dyn std::fmt::Display) -> VaultError {
        VaultError { path: self.folder.join(name).display().to_string(), reason: reason.to_string() }
    }

    /// The SHA-256 of the CA's certificate as hosts hold it.
    pub(crate) fn ca_sum(&self) -> String {
        sha256(self.ca.cert.as_bytes())
    }

    /// The CA's certificate.
    pub(crate) fn ca_cert(&self) -> &str {
        &self.ca.cert
    }

    /// The pair of an etcd member.
    pub(crate) fn member(&self, host: &str) -> &Pair {
        &self.pairs[&member_name(host)]
    }

    /// The pair with which the API server of a control plane reaches etcd.
    pub(crate) fn client(&self, host: &str) -> &Pair {
        &self.pairs[&client_name(host)]
    }

    /// Whether every certificate is on disk already.
    pub(crate) fn is_saved(&self) -> bool {
        self.pairs
            .keys()
            .map(String::as_str)
            .chain(["ca"])
            .all(|name| self.folder.join(format!("{name}.pem")).exists())
    }

    /// Writes what is not on disk yet. Folders are 0700, files 0600 from their first byte.
    pub(crate) fn save(&self) -> Result<(), VaultError> {
        let fail = |path: &Path, error: std::io::Error| VaultError {
            path: path.display().to_string(),
            reason: error.to_string(),
        };
        fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&self.folder)
            .map_err(|error| fail(&self.folder, error))?;
        for (name, pair) in
            self.pairs.iter().map(|(name, pair)| (name.as_str(), pair)).chain([("ca", &self.ca)])
        {
            // The key first: a certificate on disk means that its key is there, too.
            for (file, text) in
                [(format!("{name}-key.pem"), pair.key.expose()), (format!("{name}.pem"), &pair.cert)]
            {
                let path = self.folder.join(file);
                if !path.exists() {
                    write_private(&path, text).map_err(|error| fail(&path, error))?;
                }
            }
        }
        Ok(())
    }
}

/// Writes a file that only its owner can read: whole or not at all.
pub(crate) fn write_private(path: &Path, text: &str) -> std::io::Result<()> {
    let beside = path.with_extension(format!("new-{}", std::process::id()));
    // A leftover of a killed process with the same id must not be opened with wider permissions.
    let _ = fs::remove_file(&beside);
    let mut file = fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&beside)?;
    file.write_all(text.as_bytes())
        .and_then(|()| file.sync_all())
        .and_then(|()| fs::rename(&beside, path))
        .inspect_err(|_| {
            let _ = fs::remove_file(&beside);
        })
}

/// SHA-256 in lower-case hex.
pub(crate) fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

fn member_name(host: &str) -> String {
    format!("member-{host}")
}

fn client_name(host: &str) -> String {
    format!("apiserver-{host}")
}

fn read_pair(folder: &Path, name: &str) -> Result<Option<Pair>, VaultError> {
    let read = |file: String| {
        let path = folder.join(file);
        match fs::read_to_string(&path) {
            Ok(text) => Ok(Some(text)),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(VaultError { path: path.display().to_string(), reason: error.to_string() }),
        }
    };
    match (read(format!("{name}.pem"))?, read(format!("{name}-key.pem"))?) {
        (Some(cert), Some(key)) => Ok(Some(Pair { cert, key: Secret::new(key) })),
        (Some(_), None) => Err(VaultError {
            path: folder.join(format!("{name}.pem")).display().to_string(),
            reason: "its key is missing".to_owned(),
        }),
        // A key alone is what a killed run left; it is not in use anywhere.
        (None, _) => Ok(None),
    }
}

fn make_ca(folder: &Path) -> Result<Pair, VaultError> {
    let make = || -> Result<Pair, rcgen::Error> {
        let mut params = params("etcd-ca", &[])?;
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages =
            vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign, KeyUsagePurpose::DigitalSignature];
        let key = KeyPair::generate()?;
        let cert = params.self_signed(&key)?;
        Ok(Pair { cert: cert.pem(), key: Secret::new(key.serialize_pem()) })
    };
    make().map_err(|error| VaultError { path: folder.display().to_string(), reason: error.to_string() })
}

fn params(common_name: &str, names: &[&str]) -> Result<CertificateParams, rcgen::Error> {
    let mut params = CertificateParams::new(names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>())?;
    params.distinguished_name = rcgen::DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, common_name);
    // Hosts' clocks may be a little behind ours.
    params.not_before = OffsetDateTime::now_utc() - Duration::hours(1);
    params.not_after = OffsetDateTime::now_utc() + Duration::days(VALID_DAYS);
    Ok(params)
}

fn member_params(host: &Host) -> Result<CertificateParams, rcgen::Error> {
    let mut params = params(&member_name(&host.name), &[&host.name, "localhost"])?;
    params.subject_alt_names.push(SanType::IpAddress(host.internal_address.into()));
    params.subject_alt_names.push(SanType::IpAddress(std::net::Ipv4Addr::LOCALHOST.into()));
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    // A member is server to clients, and both server and client to its peers.
    params.extended_key_usages =
        vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
    Ok(params)
}

fn client_params(host: &Host) -> Result<CertificateParams, rcgen::Error> {
    let mut params = params(&client_name(&host.name), &[])?;
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
    Ok(params)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use kk_config::Spec;

    use super::*;

    fn spec() -> Spec {
        Spec::all_in_one("node1", std::net::Ipv4Addr::new(10, 0, 0, 1), kk_config::KubeVersion::default())
            .unwrap()
    }

    #[test]
    fn what_was_saved_is_found_again() {
        let (folder, spec) = (tempfile::tempdir().unwrap(), spec());
        let path = folder.path().join("pki/etcd");
        let first = Vault::open(&path, &spec.etcd_hosts(), &spec.control_planes()).unwrap();
        assert!(!path.exists() && !first.is_saved(), "opening writes nothing");
        first.save().unwrap();
        let again = Vault::open(&path, &spec.etcd_hosts(), &spec.control_planes()).unwrap();
        assert!(again.is_saved());
        assert_eq!(first.member("node1").cert, again.member("node1").cert);
        for entry in std::fs::read_dir(&path).unwrap() {
            assert_eq!(entry.unwrap().metadata().unwrap().permissions().mode() & 0o777, 0o600);
        }
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o700);
    }

    #[test]
    fn a_certificate_without_its_key_is_refused() {
        let (folder, spec) = (tempfile::tempdir().unwrap(), spec());
        Vault::open(folder.path(), &spec.etcd_hosts(), &[]).unwrap().save().unwrap();
        std::fs::remove_file(folder.path().join("ca-key.pem")).unwrap();
        let error = Vault::open(folder.path(), &spec.etcd_hosts(), &[]).err().unwrap();
        assert!(error.to_string().contains("ca.pem"), "{error}");
    }

    #[test]
    fn a_member_certificate_carries_its_own_addresses_only() {
        let (folder, spec) = (tempfile::tempdir().unwrap(), spec());
        let vault = Vault::open(folder.path(), &spec.etcd_hosts(), &spec.control_planes()).unwrap();
        let (_, pem) = x509_parser::pem::parse_x509_pem(vault.member("node1").cert.as_bytes()).unwrap();
        let cert = pem.parse_x509().unwrap();
        let names = format!("{:?}", cert.subject_alternative_name().unwrap().unwrap().value.general_names);
        assert!(names.contains("node1") && names.contains("[10, 0, 0, 1]"), "{names}");
        assert_eq!(cert.issuer().to_string(), "CN=etcd-ca");
    }
}
