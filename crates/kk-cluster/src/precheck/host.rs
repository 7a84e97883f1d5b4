//! What one host is, against what a cluster needs.

use kk_config::{Arch, Host, NetworkPlugin, ProxyMode, Role, Spec};
use kk_engine::Facts;

use super::Findings;
use crate::modules;

/// Least memory of a control plane in KiB: kubeadm's own bound of 1700 MB.
const CONTROL_PLANE_MEMORY_KIB: u64 = 1_700_000;
/// Least memory of any other host in KiB.
const MEMORY_KIB: u64 = 900_000;
/// Least free space in KiB for programs and images.
const FREE_KIB: u64 = 2 * 1024 * 1024;
/// The kubelet's share of a file system below which it evicts pods, in percent.
const EVICTION_PERCENT: u64 = 15;
/// Programs that a node needs, beside those of this program.
pub(crate) const NODE_TOOLS: [&str; 9] =
    ["tar", "mount", "umount", "ip", "iptables", "conntrack", "socat", "modprobe", "nsenter"];

pub(super) fn check(spec: &Spec, host: &Host, facts: &Facts, found: &mut Findings) {
    system(host, facts, found);
    tools(host, facts, found);
    capacity(spec, host, facts, found);
    kernel(spec, facts, found);
    cgroups(spec, host, facts, found);
    ports(spec, host, facts, found);
    network(host, facts, found);
    if host.is_node() {
        other_runtimes(spec, facts, found);
        other_networks(spec, facts, found);
    }
}

fn system(host: &Host, facts: &Facts, found: &mut Findings) {
    match (Arch::from_name(&facts.arch), host.arch) {
        (None, _) => found
            .error(format!("architecture {} is not supported", facts.arch), "use an amd64 or arm64 machine"),
        (Some(real), Some(said)) if real != said => found.error(
            format!("the file says arch {}, the host is {}", said.as_str(), real.as_str()),
            "remove `arch` from the file; it is detected",
        ),
        _ => {}
    }
    if !facts.systemd {
        found.error("systemd does not run here", "use a host whose init is systemd");
    }
    if !facts.swaps.is_empty() {
        found.adapted(
            format!("swap is on ({})", facts.swaps.join(", ")),
            "it is turned off, and on again by delete",
        );
    }
    if facts.selinux == "enforcing" {
        found.adapted("SELinux enforces", "it is set to permissive, and back by delete");
    }
}

fn tools(host: &Host, facts: &Facts, found: &mut Findings) {
    let needed: &[&str] = if host.is_node() { &NODE_TOOLS } else { &["tar"] };
    let missing: Vec<&str> = needed.iter().copied().filter(|tool| !facts.tools.contains_key(*tool)).collect();
    if !missing.is_empty() {
        found.error(
            format!("missing: {}", missing.join(", ")),
            "install them with the host's package manager (Debian: iproute2 iptables conntrack socat kmod util-linux)",
        );
    }
}

fn capacity(spec: &Spec, host: &Host, facts: &Facts, found: &mut Findings) {
    let control_plane = host.has_role(&Role::ControlPlane);
    let (memory, cpus) = if control_plane { (CONTROL_PLANE_MEMORY_KIB, 2) } else { (MEMORY_KIB, 1) };
    if facts.memory_kib < memory {
        found.error(
            format!("{} MiB of memory", facts.memory_kib / 1024),
            format!("give it {} MiB or more", memory / 1024),
        );
    }
    if facts.cpus < cpus {
        found.error(format!("{} processor", facts.cpus), format!("give it {cpus} or more"));
    }
    for (path, (size, free)) in &facts.disks {
        if *free < FREE_KIB && !is_installed(facts) {
            found.error(
                format!("{} MiB free on {path}", free / 1024),
                format!("make {} MiB free", FREE_KIB / 1024),
            );
        } else if host.is_node()
            && path == "/var/lib/kubelet"
            && free * 100 < size * EVICTION_PERCENT
            && !sets_eviction(spec)
        {
            found.warning(
                format!("{} % free on {path}", free * 100 / size.max(&1)),
                format!(
                    "the kubelet evicts pods below {EVICTION_PERCENT} %: make room, or set evictionHard in spec.kubernetes.kubeletConfiguration"
                ),
            );
        }
    }
}

/// Whether an earlier run has put the programs here, so that their space is no longer needed.
fn is_installed(facts: &Facts) -> bool {
    facts.files.contains_key("/usr/local/bin/kubelet")
}

fn sets_eviction(spec: &Spec) -> bool {
    spec.kubernetes.kubelet_configuration.contains_key("evictionHard")
}

fn kernel(spec: &Spec, facts: &Facts, found: &mut Findings) {
    let has = |feature: &str| facts.features.contains(feature) || facts.modules.contains(feature);
    if !has("overlay") {
        found.error("the kernel has no overlay file system", "load or install the module overlay");
    }
    if spec.kubernetes.proxy_mode == ProxyMode::Ipvs && !has("ipvs") && !has("ip_vs") {
        found.error("the kernel has no IPVS", "set spec.kubernetes.proxyMode to iptables or nftables");
    }
    let stuck: Vec<String> = modules::os::sysctls(spec)
        .into_iter()
        .filter(|(key, value)| {
            facts.sysctls_read_only.contains(key) && facts.sysctls.get(key).is_some_and(|now| now != value)
        })
        .map(|(key, _)| key)
        .collect();
    if !stuck.is_empty() {
        found.adapted(format!("read-only kernel settings: {}", stuck.join(", ")), "they stay as they are");
    }
}

fn cgroups(spec: &Spec, host: &Host, facts: &Facts, found: &mut Findings) {
    if !host.is_node() {
        return;
    }
    if !facts.cgroup_v2 && spec.kubernetes.version.at_least(1, 35) {
        found.adapted(
            format!("cgroup v1 with Kubernetes {}", spec.kubernetes.version),
            "the kubelet is told to accept it; support ends soon: plan to move to cgroup v2",
        );
    }
    if !facts.systemd_cgroups {
        found.adapted("systemd cannot manage the cgroups of pods here", "the cgroupfs driver is used");
    }
    if !facts.can_raise_limits {
        found.adapted(
            "root may not raise resource limits here",
            "containerd is told to keep OOM scores as they are",
        );
    }
}

/// The kernel keeps this much of a program's name (`TASK_COMM_LEN` without its end, proc(5)).
const COMM: usize = 15;

fn ports(spec: &Spec, host: &Host, facts: &Facts, found: &mut Findings) {
    for (port, ours) in modules::ports(spec, host) {
        if let Some(program) =
            facts.ports.get(&port).filter(|program| program[..] != ours[..ours.len().min(COMM)])
        {
            let who = if program.is_empty() { "another program" } else { program };
            found.error(
                format!("port {port} is taken by {who}"),
                format!("{ours} needs it: stop {who}, or move one of the two"),
            );
        }
    }
}

fn network(host: &Host, facts: &Facts, found: &mut Findings) {
    if !facts.addresses.contains(&host.internal_address.to_string()) {
        found.error(
            format!("no interface has the address {}", host.internal_address),
            "correct `internalAddress` in the file",
        );
    }
    if host.is_node() && facts.nameservers.is_empty() {
        found.adapted(
            "no nameserver in /etc/resolv.conf",
            "CoreDNS is set up without forwarding: names outside the cluster do not resolve in pods",
        );
    }
}

fn other_runtimes(spec: &Spec, facts: &Facts, found: &mut Findings) {
    if facts.units.get("docker.service").is_some_and(|unit| unit.active) {
        found.warning("docker runs here", "it is left alone; Kubernetes uses containerd");
    }
    // Its containers would get another runtime below them, and a delete could not tell their data from the cluster's.
    let ours = super::is_ours(facts, "/etc/systemd/system/containerd.service");
    let has_data = facts.values.get("runtime_data").is_some_and(|answer| answer == "yes");
    if facts.units.contains_key("containerd.service") && !ours {
        found.error(
            "containerd is here already, and not from kk",
            "remove its package first (containerd, containerd.io), or take a host without it",
        );
    } else if has_data && !ours {
        found.error(
            format!("{} holds data of another containerd", spec.registry.containerd_data_dir),
            "move it away, or set spec.registry.containerdDataDir to another folder",
        );
    }
}

/// A CNI configuration that is there before flannel's lets the runtime put pods into another network.
fn other_networks(spec: &Spec, facts: &Facts, found: &mut Findings) {
    let has_joined = facts.files.contains_key("/etc/kubernetes/kubelet.conf");
    if has_joined || spec.network.plugin == NetworkPlugin::None {
        return;
    }
    let others: Vec<&str> = facts
        .files
        .keys()
        .filter_map(|path| path.strip_prefix("/etc/cni/net.d/"))
        .filter(|name| *name != "10-flannel.conflist")
        .filter(|name| [".conf", ".conflist", ".json"].iter().any(|end| name.ends_with(end)))
        .collect();
    if !others.is_empty() {
        found.warning(
            format!("/etc/cni/net.d holds another network: {}", others.join(", ")),
            "move it away, or pods may be put into it before flannel runs",
        );
    }
}
