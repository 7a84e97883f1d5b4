//! A certificate with its key: reading it from the disk, and checking it.

use std::{collections::BTreeSet, fs, path::Path};

use kk_config::Secret;
use rcgen::{CertificateParams, KeyPair, PublicKeyData, SanType};
use time::OffsetDateTime;
use x509_parser::{
    certificate::X509Certificate, extensions::GeneralName, pem::parse_x509_pem, prelude::FromDer as _,
};

use super::unusable;
use crate::base::{
    certificates::{Age, Validity},
    error::BuildError,
};

/// A certificate with its key, both PEM.
#[derive(Clone)]
pub(crate) struct Pair {
    /// The certificate.
    pub cert: String,
    /// Its private key.
    pub key: Secret,
}

impl Pair {
    /// The reason why the pair cannot be used as a CA that the user supplied.
    pub(crate) fn trouble_as_ca(&self) -> Option<String> {
        let count = self.cert.matches("-----BEGIN CERTIFICATE-----").count();
        if count != 1 {
            return Some(format!("it holds {count} certificates"));
        }
        let is_ca = |(_, pem): (_, x509_parser::pem::Pem)| Some(pem.parse_x509().ok()?.is_ca());
        match parse_x509_pem(self.cert.as_bytes()).ok().and_then(is_ca) {
            None => return Some("it is not a certificate".to_owned()),
            Some(false) => return Some("it is not a CA".to_owned()),
            Some(true) => {}
        }
        if KeyPair::from_pem(self.key.expose()).is_err() {
            return Some("its key cannot be read".to_owned());
        }
        if !belong_together(self) {
            return Some("the key belongs to another certificate".to_owned());
        }
        let now = OffsetDateTime::now_utc();
        let validity = Validity::of_pem(self.cert.as_bytes())?;
        // The CA issues certificates for a year.
        (validity.days_left(now) <= 365).then(|| format!("it {}", validity.words(now)))
    }
}

/// Reads a file that may be missing.
pub(super) fn read_file(path: &Path) -> Result<Option<String>, BuildError> {
    match fs::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(unusable(path, &error)),
    }
}

pub(super) fn read_pair(directory: &Path, name: &str) -> Result<Option<Pair>, BuildError> {
    let read = |file: String| read_file(&directory.join(file));
    match (read(format!("{name}.pem"))?, read(format!("{name}-key.pem"))?) {
        (Some(cert), Some(key)) => Ok(Some(Pair { cert, key: Secret::new(key) })),
        (Some(_), None) => Err(unusable(&directory.join(format!("{name}.pem")), &"its key is missing")),
        // A killed run left a key without a certificate; it is not in use anywhere.
        (None, _) => Ok(None),
    }
}

/// Whether the key matches the certificate.
pub(super) fn belong_together(pair: &Pair) -> bool {
    let public = |(_, pem): (_, x509_parser::pem::Pem)| {
        let certificate = pem.parse_x509().ok()?;
        Some(certificate.public_key().subject_public_key.data.to_vec())
    };
    let theirs = parse_x509_pem(pair.cert.as_bytes()).ok().and_then(public);
    let key = KeyPair::from_pem(pair.key.expose()).ok();
    theirs.is_some() && theirs.as_deref() == key.as_ref().map(PublicKeyData::der_bytes)
}

/// The reason why a certificate on disk does not meet the requirements.
pub(super) fn trouble(pair: &Pair, wanted: &CertificateParams) -> Option<String> {
    if !belong_together(pair) {
        return Some("has another key".to_owned());
    }
    let now = OffsetDateTime::now_utc();
    let validity = Validity::of_pem(pair.cert.as_bytes())?;
    if matches!(validity.age(now), Age::Due | Age::Expired) {
        return Some(validity.words(now));
    }
    let wanted: BTreeSet<String> = wanted.subject_alt_names.iter().map(name_text).collect();
    (names(pair) != Some(wanted)).then(|| "is for other names or addresses".to_owned())
}

fn name_text(name: &SanType) -> String {
    match name {
        SanType::DnsName(name) => name.as_str().to_owned(),
        SanType::IpAddress(address) => address.to_string(),
        other => format!("{other:?}"),
    }
}

/// The names and addresses that a certificate is for.
fn names(pair: &Pair) -> Option<BTreeSet<String>> {
    let (_, pem) = parse_x509_pem(pair.cert.as_bytes()).ok()?;
    let (_, certificate) = X509Certificate::from_der(&pem.contents).ok()?;
    let Some(names) = certificate.subject_alternative_name().ok()? else { return Some(BTreeSet::new()) };
    let text = |name: &GeneralName<'_>| match name {
        GeneralName::DNSName(name) => (*name).to_owned(),
        GeneralName::IPAddress(bytes) => match (<[u8; 4]>::try_from(*bytes), <[u8; 16]>::try_from(*bytes)) {
            (Ok(v4), _) => std::net::Ipv4Addr::from(v4).to_string(),
            (_, Ok(v6)) => std::net::Ipv6Addr::from(v6).to_string(),
            _ => format!("{bytes:?}"),
        },
        other => format!("{other:?}"),
    };
    Some(names.value.general_names.iter().map(text).collect())
}
