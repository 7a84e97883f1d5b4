//! Errors between a version number and a verified file.

use std::io;
use std::path::{Path, PathBuf};

use kk_config::{Arch, ConfigErrors};

use crate::{Address, Component, Sha256Sum};

/// The reason why there is no verified file: what failed, where and why. [`Error::hint`] returns the remedy.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The configured mirror is not a base address.
    #[error("the mirror is not a usable address: {reason}")]
    InvalidMirror {
        /// Why it cannot be used. The address itself may contain a password.
        reason: String,
    },
    /// The version of a component is not a version.
    #[error("`{version}` is not a version of {component}: three numbers such as 1.2.3 are needed")]
    InvalidVersion {
        /// The component.
        component: Component,
        /// As given.
        version: String,
    },
    /// Neither catalogue has a checksum for the version, and no trustworthy checksum is published.
    #[error("no SHA-256 is known for {component} v{version} for {}{}{}", .arch.as_str(), because(.reason.as_deref()), known_versions(.known))]
    UnknownVersion {
        /// The component.
        component: Component,
        /// Without a leading v.
        version: String,
        /// The architecture.
        arch: Arch,
        /// Why a published checksum was not used, if there is one.
        reason: Option<String>,
        /// The nearest known versions, in ascending order.
        known: Vec<String>,
    },
    /// Neither catalogue has a checksum for a manifest in the version.
    #[error("no SHA-256 is known for {file} of {component} v{version}{}", known_versions(.known))]
    UnknownManifest {
        /// The component.
        component: Component,
        /// The name of the file.
        file: String,
        /// Without a leading v.
        version: String,
        /// The known versions, in ascending order.
        known: Vec<String>,
    },
    /// The user's catalogue is wrong; displayed with all positions.
    #[error("{0}")]
    Catalogue(ConfigErrors),
    /// The CA file of the mirror cannot be used.
    #[error("cannot use the CA file {}: {reason}", .path.display())]
    CaFile {
        /// The file.
        path: PathBuf,
        /// Why.
        reason: String,
    },
    /// The server does not have the file.
    #[error("{address} does not exist (404)")]
    NotFound {
        /// The address.
        address: Address,
    },
    /// The server refuses.
    #[error("{address} answers {status}")]
    Status {
        /// The address.
        address: Address,
        /// Code and phrase.
        status: String,
    },
    /// The transfer failed, including all attempts.
    #[error("cannot download {address}: {reason}")]
    Transfer {
        /// The address.
        address: Address,
        /// The last cause.
        reason: String,
    },
    /// A server cannot be reached at all; reported once for all files that should be on it.
    #[error("cannot reach {host}: {reason}; {} cannot be downloaded", .files.join(", "))]
    Unreachable {
        /// Name and port.
        host: String,
        /// The system's message.
        reason: String,
        /// The artifacts that are wanted from it.
        files: Vec<String>,
    },
    /// The downloaded file does not match the catalogue, even on the second attempt.
    #[error("{address} has the wrong SHA-256: expected {expected}, got {actual}")]
    WrongSum {
        /// The address.
        address: Address,
        /// From the catalogue or the published file.
        expected: Sha256Sum,
        /// The checksum of the received bytes.
        actual: Sha256Sum,
    },
    /// A published checksum is not a SHA-256.
    #[error("{address} does not hold a SHA-256")]
    NotASum {
        /// The address.
        address: Address,
    },
    /// The content of an archive does not match its component's entry in the catalogue.
    #[error("cannot unpack {}: {reason}", .archive.display())]
    Unpack {
        /// The archive.
        archive: PathBuf,
        /// Why.
        reason: String,
    },
    /// The file system of the control machine refuses.
    #[error("cannot {action} {}: {source}", .path.display())]
    File {
        /// A verb.
        action: &'static str,
        /// The file or directory.
        path: PathBuf,
        /// The system's message.
        source: io::Error,
    },
    /// A registry cannot be used at all.
    #[error("cannot use the registry {host}: {reason}")]
    Registry {
        /// Name and port.
        host: String,
        /// Why.
        reason: String,
    },
    /// An image is unavailable.
    #[error("cannot fetch the image {image}: {reason}")]
    Image {
        /// Its name.
        image: String,
        /// Why, by source.
        reason: String,
    },
    /// Packages of an operating system are unavailable.
    #[error("cannot collect the packages of {system}: {reason}")]
    Packages {
        /// Id, version and architecture.
        system: String,
        /// Why.
        reason: String,
        /// The remedy.
        hint: String,
    },
    /// A chart or a manifest is unavailable.
    #[error("cannot get the {part}: {reason}")]
    Source {
        /// The kind of the content, and its source.
        part: String,
        /// Why.
        reason: String,
        /// The remedy.
        hint: String,
    },
    /// An image cannot be pushed.
    #[error("cannot push {image}: {reason}")]
    Push {
        /// Its name in the registry.
        image: String,
        /// Why.
        reason: String,
    },
    /// A directory with images cannot be used.
    #[error("cannot use the images in {}: {reason}", .path.display())]
    Layout {
        /// The directory.
        path: PathBuf,
        /// Why.
        reason: String,
    },
    /// An offline bundle cannot be used.
    #[error("cannot use the bundle {}: {reason}", .path.display())]
    Bundle {
        /// The bundle.
        path: PathBuf,
        /// Why.
        reason: String,
    },
    /// A bundle is not signed as required.
    #[error("the signature of {} is not right: {reason}", .path.display())]
    Signature {
        /// The bundle.
        path: PathBuf,
        /// Why.
        reason: String,
    },
    /// No key is given for verifying the signature of a bundle.
    #[error("cannot verify who made the bundle {}: no public key is given", .path.display())]
    NoKey {
        /// The bundle.
        path: PathBuf,
    },
    /// A key for signatures cannot be used.
    #[error("cannot use the key {key}: {reason}")]
    Key {
        /// Its file, or the key itself.
        key: String,
        /// Why.
        reason: String,
    },
    /// A file has changed since it was verified.
    #[error("{} is damaged: its SHA-256 is {actual}", .path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The checksum of the current bytes.
        actual: Sha256Sum,
    },
    /// A part is not in the store, and no server may be asked for it.
    #[error("{part} is not in the bundle, and kk downloads nothing if it uses a bundle")]
    Offline {
        /// The missing part.
        part: String,
    },
    /// The caller gave up; the partial download is kept for the next time.
    #[error("cancelled")]
    Cancelled,
}

impl Error {
    /// The operator's remedy, if one is known. Fields have the names of the cluster's file.
    pub fn hint(&self) -> Option<String> {
        let hint = match self {
            Self::UnknownVersion { component, version, arch, .. } => {
                return Some(format!(
                    "choose a known version, or give the checksum of its published file in a file named by \
                     spec.download.catalogue: `{component}: {{{}: {{{version}: <SHA-256>}}}}`",
                    arch.as_str()
                ));
            }
            Self::UnknownManifest { component, file, version, .. } => {
                return Some(format!(
                    "choose a known version, or give the checksum of its published file in a file named by \
                     spec.download.catalogue: `{component}: {{{file}: {{{version}: <SHA-256>}}}}`"
                ));
            }
            Self::Packages { hint, .. } | Self::Source { hint, .. } => return Some(hint.clone()),
            Self::InvalidMirror { .. } => {
                "spec.download.mirror is a base address such as https://files.example.com"
            }
            Self::CaFile { .. } => "spec.download.caFile names a PEM file with the CA of the mirror",
            Self::NotFound { .. } => {
                "check the version; where spec.download.mirror is set, the mirror must have the file at this path"
            }
            Self::Status { .. } => {
                "check spec.download.mirror, which must serve without a password, and the proxy settings"
            }
            Self::Transfer { reason, .. } | Self::Unreachable { reason, .. }
                if reason.contains("certificate") =>
            {
                certificate_hint(reason)
            }
            Self::Transfer { .. } | Self::Unreachable { .. } => {
                "check the network, HTTPS_PROXY and NO_PROXY, or set spec.download.mirror; \
                 downloaded data is kept"
            }
            Self::WrongSum { .. } => {
                "the server or a proxy returns another file; if that file is right, add its checksum to the \
                 file in spec.download.catalogue"
            }
            Self::NotASum { .. } => {
                "the mirror is incomplete; add the checksum to the file in spec.download.catalogue"
            }
            Self::File { source, .. } if source.kind() == io::ErrorKind::StorageFull => {
                "free space there and run again; downloaded data is kept"
            }
            Self::File { source, .. }
                if matches!(
                    source.kind(),
                    io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem
                ) =>
            {
                "specify a writable directory with --workdir"
            }
            Self::Registry { reason, .. } | Self::Image { reason, .. } | Self::Push { reason, .. }
                if reason.contains("certificate") =>
            {
                "specify the registry's CA with certsPath in spec.registry.auths"
            }
            Self::Push { reason, .. } if reason.contains("gets the same name") => {
                "spec.registry.namespaceOverride gives all images one namespace: leave it out, or one of the images"
            }
            Self::Registry { reason, .. } | Self::Push { reason, .. }
                if reason.contains("password") || reason.contains("401") =>
            {
                "set user name and password in spec.registry.auths, or log in with `docker login`"
            }
            Self::Registry { .. } => "check that the registry runs, and correct spec.registry",
            Self::Push { .. } => {
                "check the registry, its disk and spec.registry; uploaded data stays there, and the next \
                 run resumes"
            }
            Self::Layout { .. } => "use a directory with an OCI image layout, such as an unpacked bundle",
            Self::Image { reason, .. } if reason.contains("password") || reason.contains("401") => {
                "log in with `docker login`, or set user name and password in spec.registry.auths"
            }
            Self::Image { .. } => {
                "check the name and spec.registry; downloaded data is kept for the next run"
            }
            Self::Bundle { reason, .. } if reason.contains("knows formats up to") => {
                "use the kk that made the bundle, or a newer one"
            }
            Self::Bundle { reason, .. } if reason.contains("the catalogue") => {
                "a bundle that was made with a user's catalogue needs that catalogue here, too: set \
                 spec.download.catalogue"
            }
            Self::Bundle { .. } => "copy the bundle again, or make it again with `kk artifact export`",
            Self::Signature { .. } => {
                "get the bundle and its .minisig again from its author, over a channel that you trust"
            }
            Self::NoKey { .. } => {
                "specify the minisign public key of its author with --public-key, or set spec.download.publicKey; --allow-unsigned uses a bundle of any author"
            }
            Self::Key { .. } => "specify the public key, which `minisign -G` writes as minisign.pub",
            Self::Damaged { .. } => "it was removed; run again",
            Self::Offline { .. } => {
                "make the bundle from this file: `kk create manifest -f FILE`, `kk artifact export -m manifest.yaml`"
            }
            Self::Unpack { .. } => {
                "an archive must have the same layout as the upstream archive; correct its checksum in the \
                 file in spec.download.catalogue"
            }
            _ => return None,
        };
        Some(hint.to_owned())
    }

    /// Adds a verb and a file to an I/O error: `.map_err(Error::file("write", path))`.
    pub(crate) fn file(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::File { action, path, source }
    }
}

/// The hint for a message of rustls.
fn certificate_hint(reason: &str) -> &'static str {
    if reason.contains("expired") || reason.contains("not valid yet") {
        "check the clock of this machine; if it is right, the server needs a new certificate"
    } else if reason.contains("not valid for name") {
        "name the server in spec.download.mirror as its certificate does"
    } else {
        "if the mirror or a proxy has a CA of its own, name its PEM file in spec.download.caFile; \
         otherwise install the root certificates of this machine (ca-certificates)"
    }
}

fn because(reason: Option<&str>) -> String {
    reason.map(|reason| format!(" ({reason})")).unwrap_or_default()
}

fn known_versions(known: &[String]) -> String {
    if known.is_empty() { String::new() } else { format!("; known are {}", known.join(", ")) }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use rustls::CertificateError;
    use rustls::pki_types::{ServerName, UnixTime};

    use super::*;

    #[test]
    fn a_file_system_that_refuses_gets_a_hint_by_its_reason() {
        for (kind, hint) in [
            (io::ErrorKind::StorageFull, "free space"),
            (io::ErrorKind::PermissionDenied, "--workdir"),
            (io::ErrorKind::ReadOnlyFilesystem, "--workdir"),
        ] {
            let error = Error::file("write", Path::new("x"))(kind.into());
            assert!(error.hint().unwrap().contains(hint), "{error}");
        }
    }

    #[test]
    fn the_hint_about_a_certificate_fits_what_is_wrong_with_it() {
        let at = |seconds| UnixTime::since_unix_epoch(Duration::from_secs(seconds));
        let expected = ServerName::try_from("m.example").unwrap();
        for (error, hint) in [
            (CertificateError::ExpiredContext { time: at(2), not_after: at(1) }, "clock of this machine"),
            (
                CertificateError::NotValidYetContext { time: at(1), not_before: at(2) },
                "clock of this machine",
            ),
            (
                CertificateError::NotValidForNameContext {
                    expected,
                    presented: vec!["DnsName(\"a\")".into()],
                },
                "as its certificate does",
            ),
            (CertificateError::UnknownIssuer, "spec.download.caFile"),
        ] {
            let reason = rustls::Error::InvalidCertificate(error).to_string();
            let error = Error::Unreachable { host: "m.example".into(), reason, files: Vec::new() };
            assert!(error.hint().unwrap().contains(hint), "{error}");
        }
    }
}
