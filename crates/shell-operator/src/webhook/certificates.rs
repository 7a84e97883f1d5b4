//! Certificates that the operator makes for itself.

use rcgen::{BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair};

/// A certificate authority's certificate, and a server's certificate and key, all PEM.
#[derive(Clone)]
pub struct Bundle {
    /// Certificate of the authority.
    pub ca: String,
    /// Certificate of the server.
    pub certificate: String,
    /// Key of the server.
    pub key: String,
}

/// Makes a certificate authority, whose key is forgotten at once, and a certificate for `names`.
pub fn self_signed(names: &[String]) -> Result<Bundle, rcgen::Error> {
    let ca_key = KeyPair::generate()?;
    let mut ca = CertificateParams::default();
    ca.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    ca.distinguished_name.push(DnType::CommonName, "shell-operator webhook CA");
    let ca_pem = ca.self_signed(&ca_key)?.pem();
    let issuer = Issuer::new(ca, ca_key);
    let key = KeyPair::generate()?;
    let mut server = CertificateParams::new(names)?;
    server.distinguished_name.push(DnType::CommonName, "shell-operator webhook");
    server.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    let certificate = server.signed_by(&key, &issuer)?.pem();
    Ok(Bundle { ca: ca_pem, certificate, key: key.serialize_pem() })
}
