//! Record kernel settings that the components of Kubernetes change themselves, so that a delete can restore them.

use std::fmt::Write as _;

use kk_engine::{HostWork, Kind, Task, actions::Command};

use crate::model::inputs::Inputs;

/// The settings that kube-proxy changes (Kubernetes, `pkg/proxy/iptables/proxier.go` and `cmd/kube-proxy/app/conntrack.go`).
const SETTINGS: &[&str] = &[
    "net.ipv4.conf.all.route_localnet",
    "net.netfilter.nf_conntrack_max",
    "net.netfilter.nf_conntrack_tcp_timeout_established",
    "net.netfilter.nf_conntrack_tcp_timeout_close_wait",
];

/// Runs once, before the first kube-proxy of a node: afterwards the values are no longer the host's own.
pub(super) fn task(inputs: &Inputs) -> Task {
    // The settings exist only after the module is loaded, and kube-proxy loads it.
    let mut script =
        "[ -e /proc/sys/net/netfilter/nf_conntrack_max ] || kk_module nf_conntrack || :\n".to_owned();
    for name in SETTINGS {
        let knob = format!("/proc/sys/{}", name.replace('.', "/"));
        let _ = writeln!(
            script,
            "[ ! -w {knob} ] || kk_record \"sysctl${{KK_TAB}}{name}${{KK_TAB}}$(cat {knob})\""
        );
    }
    let mut task = Task::new("record_settings", "Record kernel settings");
    for (host, _) in inputs.nodes() {
        let record =
            Command::new("record kernel settings that kube-proxy changes", script.clone()).when(|facts| {
                let known = facts.owned.has(Kind::Sysctl, SETTINGS[0]);
                !known && !facts.files.contains_key("/etc/kubernetes/kubelet.conf")
            });
        task = task.on(&host.name, HostWork::new(vec![Box::new(record)]));
    }
    task
}
