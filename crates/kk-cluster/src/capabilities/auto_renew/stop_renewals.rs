//! Stop renewals of certificates.

use kk_engine::{Facts, HostWork, Task, actions::Command};

use crate::model::inputs::Inputs;

/// Runs where renewals are switched off, and before a host is cleaned, because a renewal would restart what is being stopped. In
/// the stamp file, systemd remembers the last run of a timer that catches up on missed runs (systemd.timer(5), Persistent=).
const STOP: &str = "systemctl disable -q --now k8s-certs-renew.timer 2>/dev/null || :
systemctl stop k8s-certs-renew.service 2>/dev/null || :
rm -f /usr/local/bin/kube-scripts/k8s-certs-renew.sh /var/lib/systemd/timers/stamp-k8s-certs-renew.timer
rm -f /etc/systemd/system/k8s-certs-renew.timer /etc/systemd/system/k8s-certs-renew.service
rm -rf /run/k8s-certs-renew.*
systemctl daemon-reload
systemctl reset-failed k8s-certs-renew.service 2>/dev/null || :
";

/// Keeps the names of certificates that are being renewed, so that kk completes a renewal that has begun.
pub(super) fn task(inputs: &Inputs, is_there: fn(&Facts) -> bool) -> Task {
    let mut task = Task::new("stop_renewals", "Stop renewals of certificates");
    for (host, facts) in inputs.hosts() {
        if is_there(facts) {
            let stop = Command::new("stop and remove the timer k8s-certs-renew", STOP);
            task = task.on(&host.name, HostWork::new(vec![Box::new(stop)]));
        }
    }
    task
}
