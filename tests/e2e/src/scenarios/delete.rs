//! `delete cluster -A` gives every host back as it was before `create`.

use anyhow::Result;

use crate::cluster;
use crate::context::Context;
use crate::host_state;

pub(super) fn run(ctx: &Context<'_>) -> Result<()> {
    let cluster = cluster::ensure(ctx)?;
    // What users put there is not kk's to remove.
    for host in &cluster.site.hosts {
        ctx.host(host, "mkdir -p /var/openebs; echo precious >/var/openebs/data; iptables -A INPUT -p tcp --dport 9 -j DROP")?;
    }
    ctx.shared.replace(None);
    ctx.kk_ok(&cluster.site, "delete", &["--all"])?;
    for host in &cluster.site.hosts {
        ctx.host(host, "grep -q precious /var/openebs/data; rm -r /var/openebs; iptables -D INPUT -p tcp --dport 9 -j DROP")?;
    }
    host_state::expect_restored(ctx, &cluster.before)?;
    // A second delete finds nothing to do and is no error.
    ctx.kk_ok(&cluster.site, "delete", &["--all"])?;
    Ok(())
}
