//! Certificates that the operator makes for itself.

use std::net::IpAddr;
use std::time::Duration;

use rcgen::{BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair};
use time::OffsetDateTime;
use x509_parser::extensions::GeneralName;
use x509_parser::prelude::{Pem, X509Certificate};

/// Lifetime of certificates. They are renewed when a third of it is left.
pub const LIFETIME: Duration = Duration::from_hours(365 * 24);
/// Certificates are valid from this time before their creation on: clocks differ.
const SKEW: Duration = Duration::from_hours(1);

/// A certificate authority's certificate, and a server's certificate and key, all PEM.
#[derive(Clone)]
pub struct Bundle {
    /// Certificate of the authority; after a renewal, the certificate of the previous authority follows.
    pub ca: String,
    /// Certificate of the server.
    pub certificate: String,
    /// Key of the server.
    pub key: String,
}

/// Creates a certificate authority and a certificate for `names`. The authority's key is not kept.
pub fn self_signed(names: &[String], lifetime: Duration) -> Result<Bundle, rcgen::Error> {
    let now = OffsetDateTime::now_utc();
    let ca_key = KeyPair::generate()?;
    let mut ca = CertificateParams::default();
    (ca.not_before, ca.not_after) = (now - SKEW, now + lifetime);
    ca.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    // Two authorities may be trusted at a time, so each has its own name.
    ca.distinguished_name
        .push(DnType::CommonName, format!("shell-operator webhook CA {}", now.unix_timestamp()));
    let ca_pem = ca.self_signed(&ca_key)?.pem();
    let issuer = Issuer::new(ca, ca_key);
    let key = KeyPair::generate()?;
    let mut server = CertificateParams::new(names)?;
    (server.not_before, server.not_after) = (now - SKEW, now + lifetime);
    server.distinguished_name.push(DnType::CommonName, "shell-operator webhook");
    server.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    let certificate = server.signed_by(&key, &issuer)?.pem();
    Ok(Bundle { ca: ca_pem, certificate, key: key.serialize_pem() })
}

impl Bundle {
    /// Why the bundle has to be replaced: `None` while it is valid for long enough, for all of `names`.
    pub fn fault(&self, names: &[String]) -> Option<String> {
        let pem = Pem::iter_from_buffer(self.certificate.as_bytes()).next().and_then(Result::ok);
        let Some(pem) = pem else { return Some("its certificate is not PEM".to_owned()) };
        let Ok(certificate) = pem.parse_x509() else {
            return Some("its certificate cannot be read".to_owned());
        };
        let validity = certificate.validity();
        let (from, until) = (validity.not_before.timestamp(), validity.not_after.timestamp());
        let left = until - OffsetDateTime::now_utc().unix_timestamp();
        if left < (until - from) / 3 {
            return Some(format!("its certificate counts until {}", validity.not_after));
        }
        let missing = names.iter().find(|name| !is_for(&certificate, name))?;
        Some(format!("its certificate is not for {missing}"))
    }

    /// A new bundle in place of this one: servers that still use the old certificate are trusted, too.
    pub fn renewed(&self, names: &[String], lifetime: Duration) -> Result<Self, rcgen::Error> {
        let new = self_signed(names, lifetime)?;
        let end = "-----END CERTIFICATE-----\n";
        // Only the newest authority is kept, so that the list does not grow.
        let newest = self.ca.find(end).map_or(&*self.ca, |at| &self.ca[..at + end.len()]);
        Ok(Self { ca: format!("{}{newest}", new.ca), ..new })
    }
}

fn is_for(certificate: &X509Certificate<'_>, name: &str) -> bool {
    let Ok(Some(names)) = certificate.subject_alternative_name() else { return false };
    let address = name.parse::<IpAddr>().ok();
    names.value.general_names.iter().any(|known| match (known, address) {
        (GeneralName::DNSName(known), None) => *known == name,
        (GeneralName::IPAddress(known), Some(IpAddr::V4(address))) => **known == address.octets(),
        (GeneralName::IPAddress(known), Some(IpAddr::V6(address))) => **known == address.octets(),
        _ => false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(text: &str) -> Vec<String> {
        text.split_whitespace().map(str::to_owned).collect()
    }

    #[test]
    fn faults_are_found() {
        for (case, lifetime, wanted, expected) in [
            ("good", LIFETIME, "a.svc 127.0.0.1", None),
            ("few_names", LIFETIME, "a.svc", None),
            ("near_its_end", SKEW / 4, "a.svc", Some("counts until")),
            ("past_its_end", Duration::ZERO, "a.svc", Some("counts until")),
            ("other_name", LIFETIME, "a.svc b.svc", Some("is not for b.svc")),
            ("other_address", LIFETIME, "::1", Some("is not for ::1")),
        ] {
            println!("case {case}");
            let bundle = self_signed(&names("a.svc 127.0.0.1"), lifetime).unwrap();
            let fault = bundle.fault(&names(wanted));
            match expected {
                None => assert_eq!(fault, None, "{case}"),
                Some(expected) => {
                    assert!(
                        fault.as_deref().is_some_and(|fault| fault.contains(expected)),
                        "{case}: {fault:?}"
                    );
                }
            }
        }
    }

    #[test]
    fn what_is_no_certificate_is_replaced() {
        let bundle = Bundle { ca: String::new(), certificate: "x".to_owned(), key: String::new() };
        assert!(bundle.fault(&[]).is_some());
    }

    #[test]
    fn the_authority_before_stays_and_older_ones_go() {
        let count = |bundle: &Bundle| bundle.ca.matches("BEGIN CERTIFICATE").count();
        let first = self_signed(&names("a"), LIFETIME).unwrap();
        let second = first.renewed(&names("a"), LIFETIME).unwrap();
        let third = second.renewed(&names("a"), LIFETIME).unwrap();
        assert_eq!((count(&first), count(&second), count(&third)), (1, 2, 2));
        assert!(second.ca.ends_with(&first.ca));
        assert!(!third.ca.contains(&first.ca));
    }
}
