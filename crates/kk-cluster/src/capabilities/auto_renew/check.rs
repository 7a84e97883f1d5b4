//! Checks whether renewals work.

use kk_engine::{Question, question};

use crate::{base::findings::Findings, model::inputs::Inputs};

/// The result of the last renewal, as systemd reports it.
pub(super) const LAST: Question<String> =
    Question::new("certs_renew", "systemctl show -p Result --value k8s-certs-renew.service", question::text);

pub(super) fn findings(inputs: &Inputs, found: &mut Findings) {
    for (host, facts) in inputs.control_planes() {
        let Some(result) = facts.answer(&LAST).answered() else { continue };
        if !["", "success"].contains(&result.as_str()) {
            found.warning(
                host,
                format!("the last renewal of certificates by the timer failed ({result})"),
                "see \"journalctl -u k8s-certs-renew\" on this host; \"systemctl start k8s-certs-renew\" \
                 retries it now",
            );
        }
    }
}
