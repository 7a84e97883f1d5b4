//! (d) `delete cluster -A` gives every host back as it was before `create`.

use anyhow::Result;

use crate::cluster;
use crate::context::Context;
use crate::host_state;

/// What may differ after a delete: beginning of the entry, and why.
const ALLOWED: &[(&str, &str)] = &[];

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
    let after = host_state::of_all(ctx, &cluster.site.hosts)?;
    let mut lines = host_state::differences(&cluster.before, &after);
    lines.retain(|line| !ALLOWED.iter().any(|(entry, _)| line.contains(entry)));
    host_state::expect_none(ctx, "the hosts are not as they were before", &lines)?;
    // A second delete finds nothing to do and is no error.
    ctx.kk_ok(&cluster.site, "delete", &["--all"])?;
    Ok(())
}
