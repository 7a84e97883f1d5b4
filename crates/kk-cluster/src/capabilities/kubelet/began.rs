//! When the kubelet that runs began.

use kk_engine::{Question, question};

/// In UTC by the host's clock, in the form of the API's times, which the kubelet writes by the same clock. Nothing while none
/// runs. 3 s early: figures are cut to seconds, and a clock may be set a little after boot.
pub(crate) const BEGAN: Question<String> = Question::new(
    "kubelet_began",
    "since=$(systemctl show -p ExecMainStartTimestampMonotonic kubelet.service)
if systemctl -q is-active kubelet.service; then
    ago=$(($(cut -d . -f 1 /proc/uptime) - ${since#*=} / 1000000 + 3))
    date -u -d \"@$(($(date +%s) - ago))\" +%Y-%m-%dT%H:%M:%SZ
fi",
    question::text,
);
