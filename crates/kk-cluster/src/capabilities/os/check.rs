//! Requirements for every host, whatever runs on it.

use kk_config::{Arch, Host, ProxyMode, Role, Spec};
use kk_engine::{Facts, ProbeSpec};

use super::{NODE_NAME, disable_swap, firewall, packages, write_hosts_block};
use crate::{
    base::{findings::Findings, host_layout::ETCD_ENVIRONMENT},
    model::inputs::Inputs,
};

/// Least memory of a control plane in KiB: kubeadm's own minimum of 1700 MB.
const CONTROL_PLANE_MEMORY_KIB: u64 = 1_700_000;
/// Least memory of any other host in KiB.
const MEMORY_KIB: u64 = 900_000;
/// Least free space in KiB for binaries and images.
const FREE_KIB: u64 = 2 * 1024 * 1024;
/// Tools of the operating system that a node needs.
pub(crate) const NODE_TOOLS: [&str; 9] =
    ["tar", "mount", "umount", "ip", "iptables", "conntrack", "socat", "modprobe", "nsenter"];

/// The tools that inspect and clear IPVS.
const IPVS_TOOLS: [&str; 2] = ["ipset", "ipvsadm"];

/// Settings that nodes need even if kk does not configure the system: kubeadm refuses a host without them.
fn forwarding(spec: &Spec) -> Vec<&'static str> {
    let mut settings = vec!["net.ipv4.ip_forward"];
    settings.extend(spec.network.pods_v6.is_some().then_some("net.ipv6.conf.all.forwarding"));
    settings
}

pub(super) fn asks(spec: &Spec, probe: &mut ProbeSpec) {
    probe.sysctls.extend(forwarding(spec).into_iter().map(str::to_owned));
    probe.tools.extend(NODE_TOOLS.iter().chain(&IPVS_TOOLS).map(|tool| (*tool).to_owned()));
    probe.tools.insert("dnf".to_owned());
}

pub(super) fn findings(inputs: &Inputs, found: &mut Findings) {
    for (host, facts) in inputs.hosts() {
        silence(host, facts, found);
        machine(host, facts, found);
        tools(inputs, host, facts, found);
        firewall::findings(inputs, host, facts, found);
        capacity(inputs, host, facts, found);
        kernel(inputs, host, facts, found);
        adaptations(inputs, host, facts, found);
        if !facts.addresses.contains(&host.internal_address.to_string()) {
            found.error(
                host,
                format!("no interface has the address {}", host.internal_address),
                "correct `internalAddress` in the file",
            );
        }
    }
}

/// Reports unanswered questions on which later decisions depend.
fn silence(host: &Host, facts: &Facts, found: &mut Findings) {
    found.unanswered(host, &facts.answer(&firewall::ACTIVE), "which firewalls are active");
    found.unanswered(host, &facts.answer(&disable_swap::UNITS), "which units enable swap");
    found.unanswered(
        host,
        &facts.answer(&write_hosts_block::REWRITTEN),
        "whether cloud-init writes its /etc/hosts",
    );
    found.unanswered(host, &facts.answer(&NODE_NAME), "the name of its node");
}

fn machine(host: &Host, facts: &Facts, found: &mut Findings) {
    match (Arch::from_name(&facts.arch), host.arch) {
        (None, _) => found.error(
            host,
            format!("architecture {} is not supported", facts.arch),
            "use an amd64 or arm64 machine",
        ),
        (Some(real), Some(said)) if real != said => found.error(
            host,
            format!("the file sets arch {}, but the host is {}", said.as_str(), real.as_str()),
            "remove `arch` from the file; it is detected",
        ),
        _ => {}
    }
    if !facts.systemd {
        found.error(host, "systemd is not running", "use a host whose init is systemd");
    }
}

/// Tools that a host needs and does not have.
fn lacks(facts: &Facts, tools: &[&'static str]) -> Vec<&'static str> {
    tools.iter().copied().filter(|tool| !facts.tools.contains_key(*tool)).collect()
}

fn needed(host: &Host) -> &'static [&'static str] {
    if host.is_node() { &NODE_TOOLS } else { &["tar"] }
}

fn for_ipvs(inputs: &Inputs, host: &Host) -> &'static [&'static str] {
    let is_needed = host.is_node() && inputs.spec.kubernetes.proxy_mode == ProxyMode::Ipvs;
    if is_needed { &IPVS_TOOLS } else { &[] }
}

/// Missing tools of a host, including those that are only recommended.
pub(super) fn missing_tools(inputs: &Inputs, host: &Host, facts: &Facts) -> Vec<&'static str> {
    [lacks(facts, needed(host)), lacks(facts, for_ipvs(inputs, host))].concat()
}

fn tools(inputs: &Inputs, host: &Host, facts: &Facts, found: &mut Findings) {
    match packages::of_bundle(inputs, host, facts) {
        // The unfinished packages of a killed run are not worth a finding.
        Some(Ok(chosen)) if chosen.names.is_empty() => return,
        Some(Ok(chosen)) => {
            let names = Vec::from_iter(chosen.names).join(", ");
            return found.adapted(
                host,
                format!("missing: {}", missing_tools(inputs, host, facts).join(", ")),
                format!(
                    "kk installs {names} with their dependencies from the bundle; kk delete cluster \
                         removes them"
                ),
            );
        }
        Some(Err(why)) => {
            let missing = missing_tools(inputs, host, facts).join(", ");
            let more = if kk_config::has_dnf(&facts.os_id) {
                ", repository: {sources: […], keyring: …}"
            } else {
                ""
            };
            let hint = format!(
                "add `{{id: {}, version: \"{}\", arch: {}{more}}}` to spec.operatingSystems of the manifest and make the bundle \
                 again, or on the host: {}",
                facts.os_id,
                facts.os_version,
                inputs.arch(host),
                packages::hint(&facts.os_id, &missing_tools(inputs, host, facts)),
            );
            return found.error(host, format!("missing: {missing}; {why}"), hint);
        }
        None => {}
    }
    let missing = lacks(facts, needed(host));
    if !missing.is_empty() {
        found.error(host, format!("missing: {}", missing.join(", ")), packages::hint(&facts.os_id, &missing));
    }
    let missing = lacks(facts, for_ipvs(inputs, host));
    if !missing.is_empty() {
        found.warning(
            host,
            format!(
                "missing: {}; without them kk delete cluster can clear IPVS and its sets only while \
                 kube-proxy runs",
                missing.join(", ")
            ),
            packages::hint(&facts.os_id, &missing),
        );
    }
}

/// For a host that already runs, too little memory or CPU is only a warning: it is too late to refuse it, and a renewal of its
/// certificates needs no more than it has.
fn capacity(inputs: &Inputs, host: &Host, facts: &Facts, found: &mut Findings) {
    let runs = inputs.has_joined(host) || !host.is_node() && facts.owns(ETCD_ENVIRONMENT);
    let mut say = |message: String, hint: String| {
        if runs {
            found.warning(host, message, hint);
        } else {
            found.error(host, message, hint);
        }
    };
    let control_plane = host.has_role(&Role::ControlPlane);
    let (memory, cpus) = if control_plane { (CONTROL_PLANE_MEMORY_KIB, 2) } else { (MEMORY_KIB, 1) };
    if facts.memory_kib < memory {
        let (has, least) = (facts.memory_kib / 1024, memory / 1024);
        say(
            format!("memory {has} MiB is below the minimum of {least} MiB"),
            format!("the host needs {least} MiB or more"),
        );
    }
    if facts.cpus < cpus {
        say(
            format!("only {} CPU, at least {cpus} needed", facts.cpus),
            format!(
                "the host needs {cpus} or \
                     more"
            ),
        );
    }
    // If an earlier run has uploaded the binaries, the space for them is no longer needed.
    let last = if host.is_node() { "kubelet" } else { "etcd" };
    if facts.files.contains_key(&format!("/usr/local/bin/{last}")) {
        return;
    }
    for (path, (_, free)) in &facts.disks {
        if *free < FREE_KIB {
            found.error(
                host,
                format!("{} MiB free on {path}", free / 1024),
                format!("make {} MiB free", FREE_KIB / 1024),
            );
        }
    }
}

/// Without `br_netfilter`, the packet filter does not see packets of Services that cross a bridge.
fn kernel(inputs: &Inputs, host: &Host, facts: &Facts, found: &mut Findings) {
    let has = |name: &str| facts.features.contains(name) || facts.modules.contains(name);
    let vxlan = inputs.requirements.ports(host).iter().any(|port| port.program.contains("vxlan"));
    let needed = [("br_netfilter", host.is_node()), ("vxlan", vxlan)];
    let missing: Vec<&str> =
        needed.into_iter().filter(|(name, needed)| *needed && !has(name)).map(|(name, _)| name).collect();
    if !missing.is_empty() {
        found.warning(
            host,
            format!("the kernel does not seem to have {}", missing.join(" and ")),
            format!(
                "install the modules of kernel {} (Ubuntu: linux-modules-extra-{}; Red Hat: kernel-modules-extra)",
                facts.kernel, facts.kernel
            ),
        );
    }
}

/// Changes by the tasks of this capability, reported in advance.
fn adaptations(inputs: &Inputs, host: &Host, facts: &Facts, found: &mut Findings) {
    let rewritten = facts.answer(&write_hosts_block::REWRITTEN).answered() == Some(true);
    if rewritten && write_hosts_block::templates(facts).is_empty() {
        found.warning(
            host,
            "cloud-init rewrites /etc/hosts at each boot, and its template is not found",
            "set `manage_etc_hosts: false` in the host's cloud-config: without the entries of the cluster \
             in /etc/hosts a node does not find the API",
        );
    } else if rewritten {
        found.adapted(
            host,
            "cloud-init rewrites /etc/hosts at each boot",
            "kk adds the entries of the cluster to its template, too; kk delete cluster removes them",
        );
    }
    if inputs.spec.system.skip_configure_os {
        return not_configured(inputs, host, facts, found);
    }
    let swap = disable_swap::on(facts);
    if !swap.is_empty() {
        found.adapted(
            host,
            format!("swap is on ({})", swap.join(", ")),
            "kk turns it off; kk delete cluster turns it on again",
        );
    }
    if facts.selinux == "enforcing" {
        let hint = if inputs.spec.system.relax_selinux {
            "kk sets it to permissive, and kk delete cluster reverts this; set spec.system.relaxSELinux: false to keep it enforcing"
        } else {
            "kk does not change it (spec.system.relaxSELinux): install the policy for containers (package container-selinux); \
             \"ausearch -m avc\" on the host shows what SELinux refuses"
        };
        found.warning(host, "SELinux is enforcing", hint);
    }
    let read_only: Vec<String> = super::sysctls(inputs.spec)
        .into_iter()
        .filter(|(key, value)| {
            facts.sysctls_read_only.contains(key) && facts.sysctls.get(key).is_some_and(|now| now != value)
        })
        .map(|(key, _)| key)
        .collect();
    if !read_only.is_empty() {
        found.adapted(
            host,
            format!("read-only kernel settings: {}", read_only.join(", ")),
            "kk does not change them",
        );
    }
}

/// Necessary changes for a node that the skipped tasks would have made.
fn not_configured(inputs: &Inputs, host: &Host, facts: &Facts, found: &mut Findings) {
    let off = |name: &&str| facts.sysctls.get(*name).is_none_or(|value| value != "1");
    let missing: Vec<&str> = forwarding(inputs.spec).into_iter().filter(off).collect();
    if host.is_node() && !missing.is_empty() {
        found.error(
            host,
            format!(
                "{} is not 1, and spec.system.skipConfigureOS keeps kk from setting it",
                missing.join(
                    " \
                     and "
                )
            ),
            "set it to 1 in a file of /etc/sysctl.d and run \"sysctl --system\", or remove skipConfigureOS",
        );
    }
}
