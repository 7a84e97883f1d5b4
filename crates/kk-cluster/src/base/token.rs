//! Bootstrap token of a run, by which nodes join.

use kk_config::Secret;
use serde_json::json;

use crate::base::yaml::documents;

/// The description that identifies kk's tokens in the cluster.
pub(crate) const DESCRIPTION: &str = "kk: nodes join while the cluster is created";

/// Hours for which a token is valid: longer than any run takes until its last node has joined. It matters only if a run is killed,
/// because otherwise the task after the last join removes the token.
pub(crate) const HOURS: u32 = 4;

/// A bootstrap token of this run.
#[derive(Clone)]
pub(crate) struct Token {
    /// Six characters, public.
    pub id: String,
    /// Sixteen characters.
    pub secret: Secret,
}

impl Token {
    /// A new one, in Kubernetes' format: six and sixteen of `[a-z0-9]`.
    pub(crate) fn new() -> Self {
        Self { id: random_text(6), secret: Secret::new(random_text(16)) }
    }

    /// `id.secret`.
    pub(crate) fn text(&self) -> Secret {
        Secret::new(format!("{}.{}", self.id, self.secret.expose()))
    }
}

fn random_text(length: usize) -> String {
    const LETTERS: &[u8] = b"abcdefghijklmnopqrstuvwxyz0123456789";
    let mut bytes = vec![0_u8; length];
    let mut text = String::new();
    // Bytes from 252 up would make some letters more likely than others.
    while text.len() < length {
        getrandom::fill(&mut bytes).expect("the system has random numbers");
        let letters = bytes.iter().filter(|byte| **byte < 252);
        text.extend(letters.map(|byte| char::from(LETTERS[usize::from(*byte) % LETTERS.len()])));
    }
    text.truncate(length);
    text
}

/// The Secret that makes a bootstrap token valid on a cluster that exists already, until a time in RFC 3339 format.
pub(crate) fn token_secret(token: &Token, expires: &str) -> String {
    documents(&[json!({
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": format!("bootstrap-token-{}", token.id), "namespace": "kube-system"},
        "type": "bootstrap.kubernetes.io/token",
        "stringData": {
            "token-id": token.id,
            "token-secret": token.secret.expose(),
            "description": DESCRIPTION,
            "expiration": expires,
            "usage-bootstrap-authentication": "true",
            "auth-extra-groups": "system:bootstrappers:kubeadm:default-node-token",
        },
    })])
}
