//! The operating system as Kubernetes needs it, configured by files of kk, which are recorded so that a delete restores the
//! system.

mod apply_sysctls;
pub(crate) mod check;
mod configure_network_manager;
mod create_directories;
mod create_users;
mod disable_firewall;
pub(crate) mod disable_swap;
pub(crate) mod firewall;
mod immutable;
mod load_kernel_modules;
pub(crate) mod masked;
pub(crate) mod ownership;
pub(crate) mod packages;
mod raise_limits;
mod record_settings;
mod relax_selinux;
mod restore_host;
mod set_hostname;
pub(crate) mod write_hosts_block;

pub(crate) use immutable::NODE_NAME;
use ownership::{identity, other_run, record_identity};
use packages::install_packages;

use std::collections::BTreeMap;

use kk_config::{Host, ProxyMode, Spec};
use kk_engine::{ProbeSpec, Task};

use crate::{
    base::{
        error::BuildError,
        findings::{Findings, Setting},
    },
    capabilities::nodes,
    model::{
        capability::{Capability, Stage},
        inputs::Inputs,
    },
};

/// The operating system of every host.
pub(crate) struct Os;

impl Capability for Os {
    fn name(&self) -> &'static str {
        "os"
    }

    fn stage(&self) -> Stage {
        Stage::Hosts
    }

    fn asks(&self, inputs: &Inputs, host: &Host, probe: &mut ProbeSpec) {
        check::asks(inputs.spec, probe);
        identity::asks(probe);
        other_run::asks(probe);
        firewall::asks(probe);
        write_hosts_block::asks(probe);
        if inputs.options.with_packages {
            probe.ask(&install_packages::UNFINISHED);
        }
        if host.is_node() {
            configure_network_manager::asks(probe);
            disable_swap::asks(probe);
            probe.ask(&immutable::NODE_NAME);
        }
        probe.units.extend(disable_firewall::UNITS.map(str::to_owned));
        probe.modules.extend(kernel_modules(inputs.spec).into_iter().map(str::to_owned));
    }

    fn findings(&self, inputs: &Inputs, found: &mut Findings) {
        identity::findings(inputs, found);
        other_run::findings(inputs, found);
        check::findings(inputs, found);
        masked::findings(inputs, found);
    }

    fn immutable(&self, inputs: &Inputs) -> Vec<Setting> {
        immutable::settings(inputs)
    }

    fn install(&self, inputs: &Inputs) -> Result<Vec<Task>, BuildError> {
        let mut tasks = vec![
            record_identity::task(inputs),
            install_packages::task(inputs),
            // Before /etc/hosts is written: afterwards, nothing shows which nodes still use the previous addresses.
            nodes::mark_moves::task(inputs),
            write_hosts_block::task(inputs),
            create_users::task(inputs),
            create_directories::task(inputs),
        ];
        if !inputs.spec.system.skip_configure_os {
            tasks.extend(configure(inputs)?);
        }
        tasks.push(record_settings::task(inputs));
        Ok(tasks)
    }

    fn remove(&self, inputs: &Inputs) -> Vec<Task> {
        vec![restore_host::task(inputs)]
    }
}

/// Tasks that an administrator may replace by other means. Tasks that other capabilities depend on are not included.
fn configure(inputs: &Inputs) -> Result<Vec<Task>, BuildError> {
    Ok(vec![
        set_hostname::task(inputs),
        disable_swap::task(inputs),
        relax_selinux::task(inputs),
        disable_firewall::task(inputs),
        configure_network_manager::task(inputs),
        load_kernel_modules::task(inputs),
        apply_sysctls::task(inputs),
        raise_limits::task(inputs)?,
    ])
}

/// Kernel modules that are loaded now and at every boot.
fn kernel_modules(spec: &Spec) -> Vec<&'static str> {
    let mut modules = vec!["overlay", "br_netfilter"];
    if spec.kubernetes.proxy_mode == ProxyMode::Ipvs {
        modules.extend(["ip_vs", "ip_vs_rr", "ip_vs_wrr", "ip_vs_sh", "nf_conntrack"]);
    }
    modules
}

/// Kernel settings: the requirements of Kubernetes and its networks, and room for many connections, watches and neighbours.
///
/// The list is KubeKey's, without settings that suit only one kind of host or weaken it (`rp_filter`, swappiness, arp_*,
/// `pid_max`). Settings of the user take precedence.
fn sysctls(spec: &Spec) -> BTreeMap<String, String> {
    let mut settings: BTreeMap<String, String> = [
        ("net.ipv4.ip_forward", "1"),
        ("net.bridge.bridge-nf-call-iptables", "1"),
        ("net.bridge.bridge-nf-call-ip6tables", "1"),
        ("net.ipv4.ip_local_reserved_ports", "30000-32767"),
        ("net.core.somaxconn", "32768"),
        ("net.core.netdev_max_backlog", "65535"),
        ("net.core.rmem_max", "33554432"),
        ("net.core.wmem_max", "33554432"),
        ("net.ipv4.tcp_max_syn_backlog", "1048576"),
        ("net.ipv4.neigh.default.gc_thresh1", "512"),
        ("net.ipv4.neigh.default.gc_thresh2", "2048"),
        ("net.ipv4.neigh.default.gc_thresh3", "4096"),
        ("net.ipv4.tcp_keepalive_time", "600"),
        ("net.ipv4.tcp_keepalive_intvl", "30"),
        ("net.ipv4.tcp_keepalive_probes", "10"),
        ("vm.max_map_count", "262144"),
        ("vm.overcommit_memory", "1"),
        ("kernel.panic", "10"),
        ("kernel.panic_on_oops", "1"),
        ("fs.inotify.max_user_instances", "8192"),
        ("fs.inotify.max_user_watches", "524288"),
    ]
    .map(|(key, value)| (key.to_owned(), value.to_owned()))
    .into();
    if spec.network.pods_v6.is_some() {
        settings.insert("net.ipv6.conf.all.forwarding".to_owned(), "1".to_owned());
        settings.insert("net.ipv6.conf.all.disable_ipv6".to_owned(), "0".to_owned());
    }
    settings.extend(spec.system.sysctl.clone());
    settings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_users_settings_win() {
        let mut spec =
            Spec::all_in_one("n", std::net::Ipv4Addr::new(10, 0, 0, 1), kk_config::KubeVersion::default())
                .unwrap();
        spec.system.sysctl.insert("vm.max_map_count".into(), "1000000".into());
        assert_eq!(sysctls(&spec)["vm.max_map_count"], "1000000");
    }
}
