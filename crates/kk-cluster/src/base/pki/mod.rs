//! Certificates and keys of etcd and of the registry, on the control machine below `kubekey/<cluster>/pki` and
//! `kubekey/<cluster>/registry`.
//!
//! Owns both CAs. Keys are ECDSA P-256. As with KubeKey, certificates are valid for ten years; only those for kubelets are valid
//! for one. A missing or unusable certificate is created in memory. Only [`Pki::save`] writes files, so a dry run leaves no
//! trace.

mod pair;
mod params;

#[cfg(test)]
mod tests;

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
};

use kk_config::{Host, OwnRegistry, Secret};
use kk_util::{create_private_directory, sha256, write_private};
use rcgen::{CertificateParams, Issuer, KeyPair};

pub(crate) use pair::Pair;
use pair::{belong_together, read_file, read_pair, trouble};
use params::{
    client_name, client_params, kubelet_name, kubelet_params, make_ca, member_name, member_params,
    registry_params,
};

use crate::base::{certificates::Validity, error::BuildError};

/// A file of the PKI that cannot be read or written, or that is not a certificate.
fn unusable(path: &Path, reason: &dyn std::fmt::Display) -> BuildError {
    BuildError::local(
        format!("cannot use {}: {reason}", path.display()),
        "the directory holds a CA: restore it from a copy; remove it only when its cluster or registry no \
         longer exists",
    )
}

/// The name of the CA's files.
const CA: &str = "ca";

/// The name of members' certificates in the user interface.
pub(crate) const ETCD_MEMBER: &str = "etcd-member";
/// The name of API servers' client certificates for etcd in the user interface.
pub(crate) const ETCD_CLIENT: &str = "etcd-client";

/// The name of the registry's certificate.
const SERVER: &str = "server";

/// A CA and the certificates that it issued: for the etcd of a cluster, for example, or for its registry.
pub(crate) struct Pki {
    directory: PathBuf,
    ca: Pair,
    pairs: BTreeMap<String, Pair>,
    unsaved: BTreeSet<String>,
    renewed: BTreeMap<String, String>,
    /// Keys of certificates that are renewed; hosts use them until they get the new ones.
    old_keys: Vec<Secret>,
    saved: BTreeMap<String, String>,
    is_copy: bool,
}

impl Pki {
    /// Whether the directory has a CA with its key.
    pub(crate) fn has_ca(directory: &Path) -> bool {
        [format!("{CA}.pem"), format!("{CA}-key.pem")].iter().all(|file| directory.join(file).exists())
    }

    /// Opens the PKI in `directory` (`…/pki/etcd`), and creates missing certificates for these hosts in memory.
    ///
    /// `members` get a server and peer certificate, `clients` (the control planes) a certificate for the API server. `copy` is
    /// the CA on the hosts, for a control machine without one. `renew` may contain [`ETCD_MEMBER`] and [`ETCD_CLIENT`], whose
    /// certificates are renewed.
    pub(crate) fn open(
        directory: &Path,
        members: &[&Host],
        clients: &[&Host],
        copy: Option<Pair>,
        renew: &BTreeSet<String>,
    ) -> Result<Self, BuildError> {
        let mut pki = Self::with_ca(directory, "etcd-ca", copy)?;
        for host in members {
            pki.ensure(&member_name(&host.name), renew.contains(ETCD_MEMBER), || member_params(host))?;
        }
        for host in clients {
            pki.ensure(&client_name(&host.name), renew.contains(ETCD_CLIENT), || client_params(host))?;
        }
        Ok(pki)
    }

    /// Opens the CA in `directory` (`…/pki/etcd`) to identify the owner of hosts, for commands that sign nothing. If the key is
    /// lost, the certificate is enough.
    pub(crate) fn to_identify(directory: &Path) -> Result<Self, BuildError> {
        let cert =
            if Self::has_ca(directory) { None } else { read_file(&directory.join(format!("{CA}.pem")))? };
        let Some(cert) = cert else { return Self::with_ca(directory, "etcd-ca", None) };
        Ok(Self::of_ca(directory, Pair { cert, key: Secret::new(String::new()) }))
    }

    /// Opens the PKI of a registry in `directory` (`…/registry`), and creates missing certificates in memory.
    pub(crate) fn of_registry(directory: &Path, own: &OwnRegistry<'_>) -> Result<Self, BuildError> {
        let mut pki = Self::with_ca(directory, "registry-ca", None)?;
        pki.ensure(SERVER, false, || registry_params(own))?;
        Ok(pki)
    }

    /// Opens the PKI of a cluster's nodes in `directory`: a CA, and a certificate for each kubelet.
    pub(crate) fn of_kubernetes(
        directory: &Path,
        own: Option<Pair>,
        nodes: &[&Host],
    ) -> Result<Self, BuildError> {
        let mut pki = Self::with_ca(directory, "kubernetes", own)?;
        for host in nodes {
            pki.ensure(&kubelet_name(&host.name), false, || kubelet_params(&host.name))?;
        }
        Ok(pki)
    }

    /// Opens the CA of a front proxy in `directory`.
    pub(crate) fn of_front_proxy(directory: &Path, own: Option<Pair>) -> Result<Self, BuildError> {
        Self::with_ca(directory, "front-proxy-ca", own)
    }

    /// `name` is the name of the CA if it has to be created.
    fn with_ca(directory: &Path, name: &str, copy: Option<Pair>) -> Result<Self, BuildError> {
        let of_copy = |copy: &Pair| {
            let cert = std::fs::read_to_string(directory.join(format!("{CA}.pem")));
            cert.is_ok_and(|cert| cert == copy.cert)
        };
        let saved = match read_pair(directory, CA) {
            // Only the key is lost on this machine, and the hosts have it.
            Err(_) if !Self::has_ca(directory) && copy.as_ref().is_some_and(of_copy) => None,
            read => read?,
        };
        let unsaved = if saved.is_none() { BTreeSet::from([CA.to_owned()]) } else { BTreeSet::new() };
        let is_copy = saved.is_none() && copy.is_some();
        let ca = match saved.or(copy) {
            Some(pair) if !belong_together(&pair) => {
                return Err(unusable(&directory.join("ca.pem"), &"ca-key.pem is not its key"));
            }
            Some(pair) => pair,
            None => make_ca(directory, name)?,
        };
        Ok(Self { unsaved, is_copy, ..Self::of_ca(directory, ca) })
    }

    /// A saved CA without certificates.
    fn of_ca(directory: &Path, ca: Pair) -> Self {
        let (pairs, unsaved, renewed, old_keys, saved) = Default::default();
        Self { directory: directory.to_owned(), ca, pairs, unsaved, renewed, old_keys, saved, is_copy: false }
    }

    fn ensure(
        &mut self,
        name: &str,
        renew: bool,
        params: impl FnOnce() -> Result<CertificateParams, rcgen::Error>,
    ) -> Result<(), BuildError> {
        let cannot = |error: rcgen::Error| unusable(&self.directory.join(name), &error);
        let params = params().map_err(cannot)?;
        let saved = read_pair(&self.directory, name)?;
        let asked = || renew.then(|| "was asked for".to_owned());
        if let Some(pair) = &saved {
            self.saved.insert(name.to_owned(), pair.cert.clone());
        }
        let why = saved.as_ref().and_then(|pair| trouble(pair, &params).or_else(asked));
        let pair = match saved {
            Some(pair) if why.is_none() => pair,
            old => {
                let pair = self.issue(&params).map_err(cannot)?;
                self.old_keys.extend(old.map(|old| old.key));
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

    /// The directory on the control machine.
    pub(crate) fn directory(&self) -> &Path {
        &self.directory
    }

    /// The SHA-256 of the CA's certificate file.
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

    /// All private keys, which no message may show.
    pub(crate) fn keys(&self) -> impl Iterator<Item = &Secret> {
        std::iter::once(&self.ca.key).chain(self.pairs.values().map(|pair| &pair.key)).chain(&self.old_keys)
    }

    /// Whether the CA was read from the hosts, because the control machine had none.
    pub(crate) fn is_copy(&self) -> bool {
        self.is_copy
    }

    /// How long the CA is valid.
    pub(crate) fn ca_validity(&self) -> Option<Validity> {
        Validity::of_pem(self.ca.cert.as_bytes())
    }

    /// Certificates that are replaced although they exist, with the reason.
    pub(crate) fn renewed(&self) -> &BTreeMap<String, String> {
        &self.renewed
    }

    /// The pair of the registry.
    pub(crate) fn server(&self) -> &Pair {
        &self.pairs[SERVER]
    }

    /// The pair by which the kubelet of a node authenticates.
    pub(crate) fn kubelet(&self, host: &str) -> &Pair {
        &self.pairs[&kubelet_name(host)]
    }

    /// The pair of an etcd member.
    pub(crate) fn member(&self, host: &str) -> &Pair {
        &self.pairs[&member_name(host)]
    }

    /// The pair with which the API server of a control plane reaches etcd.
    pub(crate) fn client(&self, host: &str) -> &Pair {
        &self.pairs[&client_name(host)]
    }

    /// The certificate of a member as it is on disk, even if it is renewed.
    pub(crate) fn saved_member(&self, host: &str) -> Option<&str> {
        self.saved.get(&member_name(host)).map(String::as_str)
    }

    /// The client certificate of an API server as it is on disk, even if it is renewed.
    pub(crate) fn saved_client(&self, host: &str) -> Option<&str> {
        self.saved.get(&client_name(host)).map(String::as_str)
    }

    /// Whether every certificate is on disk already.
    pub(crate) fn is_saved(&self) -> bool {
        self.unsaved.is_empty()
    }

    /// Writes the certificates that are not on disk yet. Directories get mode 0700; files have mode 0600 from their first byte.
    pub(crate) fn save(&self) -> Result<(), BuildError> {
        create_private_directory(&self.directory).map_err(|error| unusable(&self.directory, &error))?;
        for name in &self.unsaved {
            let pair = self.pairs.get(name).unwrap_or(&self.ca);
            // The key first: if a certificate is on disk, its key is, too. A key that does not match its certificate is detected.
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
