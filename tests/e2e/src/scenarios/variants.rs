//! Hosts with other Debian releases: another systemd, another iptables, other users.

use anyhow::{Context as _, Result};

use crate::cases::{self, Case};
use crate::checks;
use crate::context::Context;
use crate::host_state;
use crate::site::Site;

struct Variant {
    name: &'static str,
    /// Arguments of `kk-lab up`.
    lab: &'static [&'static str],
    /// What is done to each host before, as shell text.
    prepare: &'static str,
}

const ALL: &[Variant] = &[
    Variant { name: "debian-11", lab: &["--suite", "bullseye"], prepare: "" },
    Variant { name: "debian-13", lab: &["--suite", "trixie"], prepare: "" },
    Variant {
        name: "usr-local-bin-not-in-path",
        lab: &[],
        prepare: "echo 'Defaults secure_path=\"/usr/sbin:/usr/bin:/sbin:/bin\"' >/etc/sudoers.d/path; echo 'PATH=/usr/bin:/bin' >/etc/environment",
    },
    Variant {
        name: "legacy-iptables",
        lab: &[],
        prepare: "update-alternatives --set iptables /usr/sbin/iptables-legacy; update-alternatives --set ip6tables /usr/sbin/ip6tables-legacy",
    },
];

impl Case for Variant {
    fn name(&self) -> &'static str {
        self.name
    }
}

pub(super) fn run(ctx: &Context<'_>) -> Result<()> {
    cases::each(ctx, ALL, |variant| one(ctx, variant))
}

fn one(ctx: &Context<'_>, variant: &Variant) -> Result<()> {
    let site = Site::booted(ctx, &ctx.dir.join(variant.name), 2, None, variant.lab)?;
    for host in &site.hosts {
        ctx.host(host, variant.prepare)?;
    }
    let before = host_state::of_all(ctx, &site.hosts)?;
    ctx.kk_ok(&site, "create", &[])?;
    checks::cluster_is_complete(ctx, &site)?;
    let again = ctx.kk_ok(&site, "create", &[])?;
    anyhow::ensure!(again.events.finished()?.changed == 0, "the second create changed something");
    ctx.kk_ok(&site, "delete", &["--all"])?;
    host_state::expect_restored(ctx, &before).context("after the delete")
}
