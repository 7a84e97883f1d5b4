//! The TLS library's keys, in a form that accepts every client certificate that an API server accepts.
//!
//! rustls compares a key with its certificate and therefore refuses certificates of X.509 version 1, which `openssl x509` makes
//! without extensions. API servers accept them. A key that does not reveal its public half is not compared.

use std::sync::Arc;

use rustls::crypto::{CryptoProvider, KeyProvider, ring};
use rustls::pki_types::PrivateKeyDer;
use rustls::sign::{Signer, SigningKey};
use rustls::{Error, SignatureAlgorithm, SignatureScheme};

/// Makes the process use this crate's TLS settings, unless it has some already.
pub fn install_crypto_provider() {
    let provider = CryptoProvider { key_provider: &Keys, ..ring::default_provider() };
    // Fails only if settings were installed before, which is fine.
    let _ = provider.install_default();
}

#[derive(Debug)]
struct Keys;

impl KeyProvider for Keys {
    fn load_private_key(&self, key: PrivateKeyDer<'static>) -> Result<Arc<dyn SigningKey>, Error> {
        let key = ring::default_provider().key_provider.load_private_key(key)?;
        Ok(Arc::new(Uncompared(key)))
    }
}

#[derive(Debug)]
struct Uncompared(Arc<dyn SigningKey>);

impl SigningKey for Uncompared {
    fn choose_scheme(&self, offered: &[SignatureScheme]) -> Option<Box<dyn Signer>> {
        self.0.choose_scheme(offered)
    }

    fn algorithm(&self) -> SignatureAlgorithm {
        self.0.algorithm()
    }
}
