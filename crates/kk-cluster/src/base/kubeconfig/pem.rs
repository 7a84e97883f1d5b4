//! PEM texts of a kubeconfig, and the public key that belongs to a private key.

use kk_config::Secret;
use rcgen::{KeyPair, PublicKeyData as _};
use x509_parser::{certificate::X509Certificate, pem::Pem};

use crate::base::encoding::base64;

/// The label of a certificate.
pub(super) const CERTIFICATE: &str = "CERTIFICATE";

/// How a private key is encoded, by its label: kubeadm writes the second and the third form (client-go, `util/keyutil`).
const PKCS8: &str = "PRIVATE KEY";
const SEC1: &str = "EC PRIVATE KEY";
const PKCS1: &str = "RSA PRIVATE KEY";

/// `AlgorithmIdentifier` of PKCS#8 (RFC 5208), DER: rsaEncryption, and ecPublicKey with the curves P-256 and P-384.
const RSA: &[u8] = b"\x30\x0d\x06\x09\x2a\x86\x48\x86\xf7\x0d\x01\x01\x01\x05\x00";
const P256: &[u8] = b"\x30\x13\x06\x07\x2a\x86\x48\xce\x3d\x02\x01\x06\x08\x2a\x86\x48\xce\x3d\x03\x01\x07";
const P384: &[u8] = b"\x30\x10\x06\x07\x2a\x86\x48\xce\x3d\x02\x01\x06\x05\x2b\x81\x04\x00\x22";

/// A private key.
pub(super) struct PrivateKey {
    label: &'static str,
    der: Vec<u8>,
}

impl PrivateKey {
    /// Whether it is the key of this certificate.
    pub(super) fn belongs_to(&self, certificate: &X509Certificate<'_>) -> bool {
        let theirs = certificate.public_key().subject_public_key.data.as_ref();
        let candidates = match self.label {
            SEC1 => vec![pkcs8(P256, &self.der), pkcs8(P384, &self.der)],
            PKCS1 => vec![pkcs8(RSA, &self.der)],
            _ => vec![self.der.clone()],
        };
        let is_own = |der: Vec<u8>| KeyPair::try_from(der).is_ok_and(|key| key.der_bytes() == theirs);
        candidates.into_iter().any(is_own)
    }

    pub(super) fn pem(&self) -> Secret {
        Secret::new(text(self.label, &self.der))
    }
}

/// The certificates of a PEM text, DER. `None` if the text contains anything else, or cannot be read.
pub(super) fn certificates(text: &[u8]) -> Option<Vec<Vec<u8>>> {
    let blocks = blocks(text)?;
    let is_certificate = |block: &Pem| block.label == CERTIFICATE && super::parsed(&block.contents).is_some();
    let all = blocks.iter().all(is_certificate);
    all.then(|| blocks.into_iter().map(|block| block.contents).collect())
}

/// The private key of a PEM text that contains nothing else.
pub(super) fn private_key(text: &[u8]) -> Option<PrivateKey> {
    let [block] = <[Pem; 1]>::try_from(blocks(text)?).ok()?;
    let label = [PKCS8, SEC1, PKCS1].into_iter().find(|label| *label == block.label)?;
    Some(PrivateKey { label, der: block.contents })
}

pub(super) fn blocks(text: &[u8]) -> Option<Vec<Pem>> {
    Pem::iter_from_buffer(text).collect::<Result<_, _>>().ok()
}

/// A PEM text (RFC 7468).
pub(super) fn text(label: &str, der: &[u8]) -> String {
    let data = base64(der);
    let mut lines = format!("-----BEGIN {label}-----\n");
    let mut rest = data.as_str();
    while !rest.is_empty() {
        let (line, more) = rest.split_at(rest.len().min(64));
        lines = lines + line + "\n";
        rest = more;
    }
    lines + &format!("-----END {label}-----\n")
}

/// A key of an older form as PKCS#8, the only form that ring reads: version 0, the algorithm, and the key.
fn pkcs8(algorithm: &[u8], key: &[u8]) -> Vec<u8> {
    let body = [b"\x02\x01\x00", algorithm, &value(0x04, key)].concat();
    value(0x30, &body)
}

/// A DER value: tag, length, content.
fn value(tag: u8, content: &[u8]) -> Vec<u8> {
    let length = content.len().to_be_bytes();
    let zeros = length.iter().take_while(|byte| **byte == 0).count();
    let significant = &length[zeros.min(length.len() - 1)..];
    let mut der = vec![tag];
    // A length of 128 or more is preceded by the number of its bytes.
    if content.len() >= 0x80 {
        der.push(0x80 | u8::try_from(significant.len()).unwrap_or_default());
    }
    der.extend(significant);
    der.extend(content);
    der
}
