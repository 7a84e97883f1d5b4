//! The certificates and keys of etcd, on this machine below `kubekey/<cluster>/pki`.
//!
//! Owns the CA of etcd. Everything is ECDSA P-256 and valid for ten years, as with KubeKey. What is not on disk yet, or can
//! no longer be used, is made in memory; only [`Pki::save`] writes, so a dry run leaves no trace.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    os::unix::fs::DirBuilderExt,
    path::{Path, PathBuf},
};

use kk_config::{Host, Secret};
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose, PublicKeyData, SanType,
};
use time::{Duration, OffsetDateTime};

use x509_parser::{
    certificate::X509Certificate, extensions::GeneralName, pem::parse_x509_pem, prelude::FromDer as _,
};

use crate::{
    BuildError,
    certificates::{Age, Validity},
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
    unsaved: BTreeSet<String>,
    renewed: BTreeMap<String, String>,
    is_copy: bool,
}

/// The name of the CA's files.
const CA: &str = "ca";

impl Pki {
    /// Whether the directory has a CA.
    pub(crate) fn has_ca(directory: &Path) -> bool {
        directory.join(format!("{CA}.pem")).exists()
    }

    /// Opens the PKI in `directory` (`…/pki/etcd`) and makes, in memory, what it lacks for these hosts.
    ///
    /// `members` get a server and peer certificate, `clients` (the control planes) one for the API server. `copy` is the CA
    /// as hosts keep it, for a machine that has none.
    pub(crate) fn open(
        directory: &Path,
        members: &[&Host],
        clients: &[&Host],
        copy: Option<Pair>,
    ) -> Result<Self, BuildError> {
        let saved = read_pair(directory, CA)?;
        let unsaved = if saved.is_none() { BTreeSet::from([CA.to_owned()]) } else { BTreeSet::new() };
        let is_copy = saved.is_none() && copy.is_some();
        let ca = match saved.or(copy) {
            Some(pair) if !belong_together(&pair) => {
                return Err(unusable(&directory.join("ca.pem"), &"ca-key.pem is not its key"));
            }
            Some(pair) => pair,
            None => make_ca(directory)?,
        };
        let (pairs, renewed) = (BTreeMap::new(), BTreeMap::new());
        let mut pki = Self { directory: directory.to_owned(), ca, pairs, unsaved, renewed, is_copy };
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
        let cannot = |error: rcgen::Error| unusable(&self.directory.join(name), &error);
        let params = params().map_err(cannot)?;
        let saved = read_pair(&self.directory, name)?;
        let why = saved.as_ref().and_then(|pair| trouble(pair, &params));
        let pair = match saved {
            Some(pair) if why.is_none() => pair,
            _ => {
                let pair = self.issue(&params).map_err(cannot)?;
                self.unsaved.insert(name.to_owned());
                self.renewed.extend(why.map(|why| (name.to_owned(), why)));
                pair
            }
        };
        self.pairs.insert(name.to_owned(), pair);
        Ok(())
    }

    fn issue(&self, params: &CertificateParams) -> Result<Pair, rcgen::Error> {
        let issuer = Issuer::from_ca_cert_pem(&self.ca.cert, KeyPair::from_pem(self.ca.key.expose())?)?;
        let key = KeyPair::generate()?;
        let cert = params.signed_by(&key, &issuer)?;
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

    /// The CA's key.
    pub(crate) fn ca_key(&self) -> &Secret {
        &self.ca.key
    }

    /// Whether the CA is that of the hosts, because this machine had none.
    pub(crate) fn is_copy(&self) -> bool {
        self.is_copy
    }

    /// How long the CA is valid.
    pub(crate) fn ca_validity(&self) -> Option<Validity> {
        Validity::of_pem(self.ca.cert.as_bytes())
    }

    /// Certificates that are made anew although there are some, and why.
    pub(crate) fn renewed(&self) -> &BTreeMap<String, String> {
        &self.renewed
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
        self.unsaved.is_empty()
    }

    /// Writes what is not on disk yet. Directories are 0700, files 0600 from their first byte.
    pub(crate) fn save(&self) -> Result<(), BuildError> {
        fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&self.directory)
            .map_err(|error| unusable(&self.directory, &error))?;
        for name in &self.unsaved {
            let pair = self.pairs.get(name).unwrap_or(&self.ca);
            // The key first: a certificate on disk means that a key is there, too. One of another certificate is noticed.
            for (file, text) in
                [(format!("{name}-key.pem"), pair.key.expose()), (format!("{name}.pem"), &pair.cert)]
            {
                let path = self.directory.join(file);
                write_private(&path, text).map_err(|error| unusable(&path, &error))?;
            }
        }
        Ok(())
    }
}

/// Whether the key is that of the certificate.
fn belong_together(pair: &Pair) -> bool {
    let public = |(_, pem): (_, x509_parser::pem::Pem)| {
        let certificate = pem.parse_x509().ok()?;
        Some(certificate.public_key().subject_public_key.data.to_vec())
    };
    let theirs = parse_x509_pem(pair.cert.as_bytes()).ok().and_then(public);
    let key = KeyPair::from_pem(pair.key.expose()).ok();
    theirs.is_some() && theirs.as_deref() == key.as_ref().map(PublicKeyData::der_bytes)
}

/// Why a certificate on disk cannot be used for what is wanted.
fn trouble(pair: &Pair, wanted: &CertificateParams) -> Option<String> {
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
        let first = Pki::open(&path, &spec.etcd_hosts(), &spec.control_planes(), None).unwrap();
        assert!(!path.exists() && !first.is_saved(), "opening writes nothing");
        first.save().unwrap();
        let again = Pki::open(&path, &spec.etcd_hosts(), &spec.control_planes(), None).unwrap();
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
        Pki::open(directory.path(), &spec.etcd_hosts(), &[], None).unwrap().save().unwrap();
        std::fs::remove_file(directory.path().join("ca-key.pem")).unwrap();
        let error = Pki::open(directory.path(), &spec.etcd_hosts(), &[], None).err().unwrap();
        assert!(error.to_string().contains("ca.pem"), "{error}");
    }

    #[test]
    fn a_member_certificate_carries_its_own_addresses_only() {
        let (directory, spec) = (tempfile::tempdir().unwrap(), spec());
        let pki = Pki::open(directory.path(), &spec.etcd_hosts(), &spec.control_planes(), None).unwrap();
        let (_, pem) = x509_parser::pem::parse_x509_pem(pki.member("node1").cert.as_bytes()).unwrap();
        let cert = pem.parse_x509().unwrap();
        let names = format!("{:?}", cert.subject_alternative_name().unwrap().unwrap().value.general_names);
        assert!(names.contains("node1") && names.contains("[10, 0, 0, 1]"), "{names}");
        assert_eq!(cert.issuer().to_string(), "CN=etcd-ca");
    }

    /// The PKI of these hosts after `spoil` has changed the saved one.
    fn opened_again(spec: &Spec, spoil: impl FnOnce(&Path)) -> (Pki, Pki) {
        let directory = tempfile::tempdir().unwrap();
        let open = |spec: &Spec| Pki::open(directory.path(), &spec.etcd_hosts(), &[], None).unwrap();
        let first = open(&self::spec());
        first.save().unwrap();
        spoil(directory.path());
        let again = open(spec);
        again.save().unwrap();
        assert!(open(spec).is_saved() && open(spec).renewed().is_empty(), "what was renewed is saved");
        (first, again)
    }

    /// The hosts, what happens to the saved files, and what is said then.
    type Case<'a> = (&'a Spec, &'a dyn Fn(&Path), &'a str);

    #[test]
    fn a_certificate_that_cannot_be_used_is_made_anew() {
        let mut moved = spec();
        moved.hosts[0].internal_address = std::net::Ipv4Addr::new(10, 0, 0, 2);
        let pem = |directory: &Path| directory.join("member-node1.pem");
        let resign = |directory: &Path, days: i64| {
            let read = |name| fs::read_to_string(directory.join(name)).unwrap();
            let issuer =
                Issuer::from_ca_cert_pem(&read("ca.pem"), KeyPair::from_pem(&read("ca-key.pem")).unwrap())
                    .unwrap();
            let mut params = member_params(&spec().hosts[0]).unwrap();
            params.not_after = OffsetDateTime::now_utc() + Duration::days(days);
            params.not_before = params.not_after - Duration::days(VALID_DAYS);
            let key = KeyPair::from_pem(&read("member-node1-key.pem")).unwrap();
            fs::write(pem(directory), params.signed_by(&key, &issuer).unwrap().pem()).unwrap();
        };
        let cases: [Case<'_>; 6] = [
            (&spec(), &|_| {}, ""),
            (&spec(), &|directory| resign(directory, 31), ""),
            (&spec(), &|directory| resign(directory, 29), "expires on "),
            (&spec(), &|directory| resign(directory, -1), "has expired on "),
            (&moved, &|_| {}, "is for other names or addresses"),
            (
                &spec(),
                // Killed after the key of a new certificate was written.
                &|directory| {
                    let key = KeyPair::generate().unwrap().serialize_pem();
                    fs::write(directory.join("member-node1-key.pem"), key).unwrap();
                },
                "has another key",
            ),
        ];
        for (spec, spoil, why) in cases {
            let (first, again) = opened_again(spec, spoil);
            let found = again.renewed().get("member-node1").cloned().unwrap_or_default();
            assert!(found.starts_with(why) && found.is_empty() == why.is_empty(), "{found} instead of {why}");
            assert!(belong_together(again.member("node1")));
            assert_eq!(first.ca_sum(), again.ca_sum());
        }
    }

    #[test]
    fn a_machine_without_the_ca_takes_the_copy_of_a_host() {
        let (lost, found) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let first = Pki::open(lost.path(), &[], &[], None).unwrap();
        let again = Pki::open(found.path(), &[], &[], Some(first.ca.clone())).unwrap();
        assert!(again.ca_sum() == first.ca_sum() && !again.is_saved() && again.is_copy());
        again.save().unwrap();
        let other = Pki::open(lost.path(), &[], &[], None).unwrap();
        let own = Pki::open(found.path(), &[], &[], Some(other.ca)).unwrap();
        assert!(own.ca_sum() == first.ca_sum() && own.is_saved() && !own.is_copy(), "its own comes first");
        let torn = Pair { key: other_key(), ..first.ca };
        assert!(Pki::open(lost.path(), &[], &[], Some(torn)).is_err());
    }

    fn other_key() -> Secret {
        Secret::new(KeyPair::generate().unwrap().serialize_pem())
    }
}
