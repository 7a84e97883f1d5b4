//! Records at the head of a host's ownership record which cluster the host belongs to.

use kk_connector::quote;

use crate::{Action, Apply, Change, Facts, Script};

/// Records that the host belongs to a cluster. A host that belongs to another cluster is refused; the host itself makes this
/// check.
#[derive(Clone, Debug)]
pub struct ClusterIdentity {
    name: String,
    ca_sha256: String,
}

impl ClusterIdentity {
    /// The cluster of this name, whose CA has this SHA-256.
    pub fn new(name: impl Into<String>, ca_sha256: impl Into<String>) -> Self {
        Self { name: name.into(), ca_sha256: ca_sha256.into() }
    }
}

impl Action for ClusterIdentity {
    fn check(&self, facts: &Facts) -> Change {
        let known = facts.owned.identity();
        if known.is_some_and(|known| known.cluster == self.name && known.ca_sha256 == self.ca_sha256) {
            return Change::None;
        }
        Change::needed(format!("record that the host belongs to the cluster {}", self.name))
    }

    fn apply(&self, _facts: &Facts) -> Apply {
        let (name, ca) = (quote(&self.name), quote(&self.ca_sha256));
        Apply::Script(Script::new(format!("kk_belong {name} {ca}\n")))
    }

    fn hint(&self, stderr: &str) -> Option<String> {
        stderr
            .contains("belongs to the cluster")
            .then(|| "correct the address in the file, or delete that cluster first".to_owned())
    }
}
