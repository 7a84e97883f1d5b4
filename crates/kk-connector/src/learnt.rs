//! Host keys that were accepted on the first connection to a host.

use std::sync::{Arc, Mutex, PoisonError};

/// A host key that was seen for the first time and is trusted from now on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LearntKey {
    /// The name of the host, or "bastion of" and the name.
    pub host: String,
    /// `address:port` as dialled.
    pub address: String,
    /// The type of the key, `ssh-ed25519`.
    pub kind: String,
    /// As OpenSSH prints it: `SHA256:…`.
    pub fingerprint: String,
}

/// The keys that connections have learnt. Clones share them.
#[derive(Clone, Debug, Default)]
pub struct LearntKeys(Arc<Mutex<Vec<LearntKey>>>);

impl LearntKeys {
    pub(crate) fn add(&self, key: LearntKey) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(key);
    }

    /// The keys that were learnt since the last call.
    pub fn take(&self) -> Vec<LearntKey> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
