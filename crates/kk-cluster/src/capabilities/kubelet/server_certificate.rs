//! The kubelet's server certificate, which it signs itself at its first start and never again.

use kk_engine::{Facts, actions::Command};
use time::OffsetDateTime;

use crate::base::certificates::{self, Age, Validity};

/// Its validity, when it is to be made again.
pub(crate) fn due(facts: &Facts) -> Option<Validity> {
    let server = certificates::of(facts).get("kubelet-server")?.validity?;
    matches!(server.age(OffsetDateTime::now_utc()), Age::Due | Age::Expired).then_some(server)
}

/// Removes it; the start of the kubelet that follows makes another one. The kubelet is stopped before: where the run ends
/// between the two, the next one starts it.
pub(crate) fn remove() -> Command {
    Command::new(
        "remove the kubelet's server certificate, so that it makes a new one",
        "systemctl stop kubelet.service\nrm -f /var/lib/kubelet/pki/kubelet.key /var/lib/kubelet/pki/kubelet.crt\n",
    )
}
