//! Hosts and files that no other scenario has: other Debian releases, other network settings, one host only. Each variant
//! becomes a cluster, a second create changes nothing, and a delete restores the hosts.

use anyhow::{Context as _, Result};
use serde_json::{Value, json};

use crate::cases::{self, Case};
use crate::checks;
use crate::context::Context;
use crate::host_state;
use crate::site::{Site, host_entry};

struct Variant {
    name: &'static str,
    hosts: u8,
    /// Arguments of `kk-lab up`.
    lab: &'static [&'static str],
    /// Shell text that prepares each host.
    prepare: &'static str,
    edit: fn(&mut Value),
    /// Succeeds on each host of such a cluster.
    seen: &'static str,
}

/// Two hosts as the lab boots them.
const USUAL: Variant = Variant { name: "", hosts: 2, lab: &[], prepare: "", edit: |_| (), seen: "" };

const ALL: &[Variant] = &[
    Variant { name: "debian-11", lab: &["--suite", "bullseye"], ..USUAL },
    Variant { name: "debian-13", lab: &["--suite", "trixie"], ..USUAL },
    Variant {
        name: "usr-local-bin-not-in-path",
        prepare: "echo 'Defaults secure_path=\"/usr/sbin:/usr/bin:/sbin:/bin\"' >/etc/sudoers.d/path; echo 'PATH=/usr/bin:/bin' >/etc/environment",
        ..USUAL
    },
    Variant {
        name: "legacy-iptables",
        prepare: "update-alternatives --set iptables /usr/sbin/iptables-legacy; update-alternatives --set ip6tables /usr/sbin/ip6tables-legacy",
        ..USUAL
    },
    Variant { name: "all-in-one", hosts: 1, ..USUAL },
    Variant {
        name: "host-gw",
        edit: |cluster| cluster["spec"]["network"]["flannel"] = json!({"backendMode": "host-gw"}),
        seen: "ip -4 route show | grep -Eq '^10\\.233\\.[0-9]+\\.0/24 via 172\\.30\\.0\\.'; ! ip link show flannel.1 2>/dev/null",
        ..USUAL
    },
    Variant {
        name: "nftables",
        edit: |cluster| cluster["spec"]["kubernetes"]["proxyMode"] = json!("nftables"),
        seen: "nft list table ip kube-proxy >/dev/null; ! iptables-save | grep KUBE-SVC",
        ..USUAL
    },
    Variant {
        name: "dual-stack",
        // The number of the host ends its address.
        prepare: "ip -6 address add fd00:30::$(ip -4 -o address show dev host0 | sed -E 's|.*172\\.30\\.0\\.([0-9]+)/.*|\\1|')/64 dev host0 nodad",
        edit: |cluster| {
            for (name, last) in [("node1", "11"), ("node2", "12")] {
                let addresses = format!("172.30.0.{last},fd00:30::{last}");
                host_entry(cluster, name)["internalAddress"] = json!(addresses);
            }
            let network = &mut cluster["spec"]["network"];
            network["kubePodsCIDR"] = json!("10.233.64.0/18,fd00:40::/56");
            network["kubeServiceCIDR"] = json!("10.233.0.0/18,fd00:50::/112");
            cluster["spec"]["kubernetes"]["nodeCidrMaskSizeIPv6"] = json!(64);
        },
        seen: "ip -6 route show | grep '^fd00:40:'",
        ..USUAL
    },
    Variant {
        name: "skip-configure-os",
        prepare: "sysctl -qw net.ipv4.ip_forward=1",
        edit: |cluster| cluster["spec"]["system"]["skipConfigureOS"] = json!(true),
        seen: "! grep -qs . /etc/sysctl.d/*kubekey* /etc/modules-load.d/*kubekey* /etc/security/limits.d/*kubekey*",
        ..USUAL
    },
];

impl Case for Variant {
    fn name(&self) -> &'static str {
        self.name
    }
}

/// Two labs share the list.
pub(super) fn run_first(ctx: &Context<'_>) -> Result<()> {
    cases::each(ctx, &ALL[..ALL.len() / 2], |variant| one(ctx, variant))
}

pub(super) fn run_second(ctx: &Context<'_>) -> Result<()> {
    cases::each(ctx, &ALL[ALL.len() / 2..], |variant| one(ctx, variant))
}

fn one(ctx: &Context<'_>, variant: &Variant) -> Result<()> {
    let booted = Site::booted(ctx, &ctx.dir.join(variant.name), variant.hosts, None, variant.lab)?;
    let site = booted.variant("edited", variant.edit)?;
    for host in &site.hosts {
        ctx.host(host, variant.prepare)?;
    }
    let before = host_state::of_all(ctx, &site.hosts)?;
    ctx.kk_ok(&site, "create", &[])?;
    checks::cluster_is_complete(ctx, &site)?;
    for host in &site.hosts {
        ctx.host(host, variant.seen).context("the cluster is not of this kind")?;
    }
    checks::dns_pods_answer_everywhere(ctx, &site)?;
    checks::create_changes_nothing(ctx, &site)?;
    ctx.kk_ok(&site, "delete", &["--all"])?;
    host_state::expect_restored(ctx, &before).context("after the delete")
}
