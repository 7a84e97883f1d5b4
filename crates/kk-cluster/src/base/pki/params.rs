//! Contents of each kind of certificate.

use std::path::Path;

use kk_config::{Host, OwnRegistry, Secret};
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, KeyPair, KeyUsagePurpose,
    SanType,
};
use time::{Duration, OffsetDateTime};

use super::{Pair, unusable};
use crate::base::error::BuildError;

/// Ten years, in days.
pub(super) const VALID_DAYS: i64 = 3650;

pub(super) fn member_name(host: &str) -> String {
    format!("member-{host}")
}

pub(super) fn client_name(host: &str) -> String {
    format!("apiserver-{host}")
}

pub(super) fn kubelet_name(host: &str) -> String {
    format!("kubelet-{host}")
}

/// As the controller manager signs them: with the names that the node authorizer expects, and for a year. The kubelet renews its
/// certificate itself.
pub(super) fn kubelet_params(host: &str) -> Result<CertificateParams, rcgen::Error> {
    let mut params = params(&format!("system:node:{host}"), &[])?;
    params.distinguished_name.push(DnType::OrganizationName, "system:nodes");
    params.not_after = OffsetDateTime::now_utc() + Duration::days(365);
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
    Ok(params)
}

pub(super) fn make_ca(directory: &Path, name: &str) -> Result<Pair, BuildError> {
    let make = || -> Result<Pair, rcgen::Error> {
        let mut params = params(name, &[])?;
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
    // The clocks of hosts may be slightly behind the clock of the control machine.
    params.not_before = OffsetDateTime::now_utc() - Duration::hours(1);
    params.not_after = OffsetDateTime::now_utc() + Duration::days(VALID_DAYS);
    Ok(params)
}

pub(super) fn member_params(host: &Host) -> Result<CertificateParams, rcgen::Error> {
    let mut params = params(&member_name(&host.name), &[&host.name, "localhost"])?;
    params.subject_alt_names.push(SanType::IpAddress(host.internal_address.into()));
    params.subject_alt_names.push(SanType::IpAddress(std::net::Ipv4Addr::LOCALHOST.into()));
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    // A member is server to clients, and both server and client to its peers.
    params.extended_key_usages =
        vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
    Ok(params)
}

pub(super) fn client_params(host: &Host) -> Result<CertificateParams, rcgen::Error> {
    let mut params = params(&client_name(&host.name), &[])?;
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
    Ok(params)
}

pub(super) fn registry_params(own: &OwnRegistry<'_>) -> Result<CertificateParams, rcgen::Error> {
    let mut names = vec![own.host.name.as_str(), "localhost"];
    names.extend(Some(own.name).filter(|_| own.has_name()));
    names.extend(
        Some(own.host.address.as_str()).filter(|address| address.parse::<std::net::IpAddr>().is_err()),
    );
    let mut params = params("registry", &names)?;
    let addresses = own.addresses().into_iter().chain([std::net::Ipv4Addr::LOCALHOST.into()]);
    params.subject_alt_names.extend(addresses.map(SanType::IpAddress));
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    Ok(params)
}
