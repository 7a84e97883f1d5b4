//! The certificates and keys of etcd, on this machine below `kubekey/<cluster>/pki`.
//!
//! Owns the CA of etcd. Everything is ECDSA P-256 and valid for ten years, as with KubeKey. What is not on disk yet is made
//! in memory; only [`Pki::save`] writes, so a dry run leaves no trace.

use std::{
    collections::BTreeMap,
    fs,
    os::unix::fs::DirBuilderExt,
    path::{Path, PathBuf},
};

use kk_config::{Host, Secret};
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose, SanType,
};
use time::{Duration, OffsetDateTime};

use crate::{
    BuildError,
    local::{sha256, write_private},
};

/// Ten years, in days.
const VALID_DAYS: i64 = 3650;

/// A file of the PKI that cannot be read or written, or that is no certificate.
fn unusable(path: &Path, reason: &dyn std::fmt::Display) -> BuildError {
    BuildError::local(
        format!("cannot use {}: {reason}", path.display()),
        "the directory holds the CA of etcd: restore it from a copy; remove it only when its cluster is gone",
    )
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
pub(crate) struct Pki {
    directory: PathBuf,
    ca: Pair,
    pairs: BTreeMap<String, Pair>,
}

impl Pki {
    /// Opens the PKI in `directory` (`…/pki/etcd`) and makes, in memory, what it lacks for these hosts.
    ///
    /// `members` get a server and peer certificate, `clients` (the control planes) one for the API server.
    pub(crate) fn open(directory: &Path, members: &[&Host], clients: &[&Host]) -> Result<Self, BuildError> {
        let ca = match read_pair(directory, "ca")? {
            Some(pair) => pair,
            None => make_ca(directory)?,
        };
        let mut pki = Self { directory: directory.to_owned(), ca, pairs: BTreeMap::new() };
        for host in members {
            pki.ensure(&member_name(&host.name), || member_params(host))?;
        }
        for host in clients {
            pki.ensure(&client_name(&host.name), || client_params(host))?;
        }
        Ok(pki)
    }

    fn ensure(
        &mut self,
        name: &str,
        params: impl FnOnce() -> Result<CertificateParams, rcgen::Error>,
    ) -> Result<(), BuildError> {
        let pair = match read_pair(&self.directory, name)? {
            Some(pair) => pair,
            None => self.issue(params).map_err(|error| unusable(&self.directory.join(name), &error))?,
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
            .all(|name| self.directory.join(format!("{name}.pem")).exists())
    }

    /// Writes what is not on disk yet. Directories are 0700, files 0600 from their first byte.
    pub(crate) fn save(&self) -> Result<(), BuildError> {
        fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&self.directory)
            .map_err(|error| unusable(&self.directory, &error))?;
        for (name, pair) in
            self.pairs.iter().map(|(name, pair)| (name.as_str(), pair)).chain([("ca", &self.ca)])
        {
            // The key first: a certificate on disk means that its key is there, too.
            for (file, text) in
                [(format!("{name}-key.pem"), pair.key.expose()), (format!("{name}.pem"), &pair.cert)]
            {
                let path = self.directory.join(file);
                if !path.exists() {
                    write_private(&path, text).map_err(|error| unusable(&path, &error))?;
                }
            }
        }
        Ok(())
    }
}

fn member_name(host: &str) -> String {
    format!("member-{host}")
}

fn client_name(host: &str) -> String {
    format!("apiserver-{host}")
}

fn read_pair(directory: &Path, name: &str) -> Result<Option<Pair>, BuildError> {
    let read = |file: String| {
        let path = directory.join(file);
        match fs::read_to_string(&path) {
            Ok(text) => Ok(Some(text)),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(unusable(&path, &error)),
        }
    };
    match (read(format!("{name}.pem"))?, read(format!("{name}-key.pem"))?) {
        (Some(cert), Some(key)) => Ok(Some(Pair { cert, key: Secret::new(key) })),
        (Some(_), None) => Err(unusable(&directory.join(format!("{name}.pem")), &"its key is missing")),
        // A key alone is what a killed run left; it is not in use anywhere.
        (None, _) => Ok(None),
    }
}

fn make_ca(directory: &Path) -> Result<Pair, BuildError> {
    let make = || -> Result<Pair, rcgen::Error> {
        let mut params = params("etcd-ca", &[])?;
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages =
            vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign, KeyUsagePurpose::DigitalSignature];
        let key = KeyPair::generate()?;
        let cert = params.self_signed(&key)?;
        Ok(Pair { cert: cert.pem(), key: Secret::new(key.serialize_pem()) })
    };
    make().map_err(|error| unusable(directory, &error))
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
        let (directory, spec) = (tempfile::tempdir().unwrap(), spec());
        let path = directory.path().join("pki/etcd");
        let first = Pki::open(&path, &spec.etcd_hosts(), &spec.control_planes()).unwrap();
        assert!(!path.exists() && !first.is_saved(), "opening writes nothing");
        first.save().unwrap();
        let again = Pki::open(&path, &spec.etcd_hosts(), &spec.control_planes()).unwrap();
        assert!(again.is_saved());
        assert_eq!(first.member("node1").cert, again.member("node1").cert);
        for entry in std::fs::read_dir(&path).unwrap() {
            assert_eq!(entry.unwrap().metadata().unwrap().permissions().mode() & 0o777, 0o600);
        }
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o700);
    }

    #[test]
    fn a_certificate_without_its_key_is_refused() {
        let (directory, spec) = (tempfile::tempdir().unwrap(), spec());
        Pki::open(directory.path(), &spec.etcd_hosts(), &[]).unwrap().save().unwrap();
        std::fs::remove_file(directory.path().join("ca-key.pem")).unwrap();
        let error = Pki::open(directory.path(), &spec.etcd_hosts(), &[]).err().unwrap();
        assert!(error.to_string().contains("ca.pem"), "{error}");
    }

    #[test]
    fn a_member_certificate_carries_its_own_addresses_only() {
        let (directory, spec) = (tempfile::tempdir().unwrap(), spec());
        let pki = Pki::open(directory.path(), &spec.etcd_hosts(), &spec.control_planes()).unwrap();
        let (_, pem) = x509_parser::pem::parse_x509_pem(pki.member("node1").cert.as_bytes()).unwrap();
        let cert = pem.parse_x509().unwrap();
        let names = format!("{:?}", cert.subject_alternative_name().unwrap().unwrap().value.general_names);
        assert!(names.contains("node1") && names.contains("[10, 0, 0, 1]"), "{names}");
        assert_eq!(cert.issuer().to_string(), "CN=etcd-ca");
    }
}
