//! Renews the kubelet's server certificate, which the kubelet signs itself at its first start and never again.

use kk_engine::{Facts, actions::Command};
use time::OffsetDateTime;

use crate::base::certificates::{self, Age, Validity};

/// The validity of the certificate, if it must be renewed.
pub(crate) fn due(facts: &Facts) -> Option<Validity> {
    let server = certificates::of(facts).get("kubelet-server")?.validity?;
    matches!(server.age(OffsetDateTime::now_utc()), Age::Due | Age::Expired).then_some(server)
}

/// Removes the certificate; the next start of the kubelet creates another one. The kubelet is stopped first: if the run ends in
/// between, the next run starts it.
pub(crate) fn remove() -> Command {
    Command::new(
        "remove the kubelet's server certificate, so that it makes a new one",
        "systemctl stop kubelet.service\nrm -f /var/lib/kubelet/pki/kubelet.key /var/lib/kubelet/pki/kubelet.crt\n",
    )
}
