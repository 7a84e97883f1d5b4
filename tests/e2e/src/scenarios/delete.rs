//! `delete cluster -A` gives every host back as it was before `create`; backups of etcd stay.

use anyhow::Result;

use crate::cluster;
use crate::context::Context;
use crate::host_state;

/// The default directory for backups.
const BACKUPS: &str = "/var/backups/kube_etcd";
/// Temporary name of a backup. A directory with this name makes the backup fail.
const HALF: &str = "/var/backups/kube_etcd/.new.db";

pub(super) fn run(ctx: &Context<'_>) -> Result<()> {
    let cluster = cluster::ensure(ctx)?;
    // Users' files and packet filter rules are not kk's to remove.
    for host in &cluster.site.hosts {
        ctx.host(host, "mkdir -p /var/openebs; echo precious >/var/openebs/data; iptables -A INPUT -p tcp --dport 9 -j DROP")?;
    }
    // The timer creates the first backup a quarter of an hour after the start, which may be before or after this scenario.
    ctx.host(cluster.site.control_plane(), "systemctl start backup-etcd.service")?;
    // A failed backup leaves nothing behind, either.
    let fail = format!(
        "mkdir {HALF} && touch {HALF}/x; ! systemctl start backup-etcd.service 2>/dev/null && rm -r {HALF}"
    );
    ctx.host(cluster.site.control_plane(), &fail)?;
    ctx.shared.replace(None);
    ctx.kk_ok(&cluster.site, "delete", &["--all"])?;
    for host in &cluster.site.hosts {
        ctx.host(host, "grep -q precious /var/openebs/data; rm -r /var/openebs; iptables -D INPUT -p tcp --dport 9 -j DROP")?;
    }
    ctx.host(cluster.site.control_plane(), &format!("ls {BACKUPS}/snapshot-*.db"))?;
    for host in &cluster.site.hosts {
        ctx.host(host, &format!("rm -rf {BACKUPS}"))?;
    }
    host_state::expect_restored(ctx, &cluster.before)?;
    // A second delete finds nothing to do and is no error.
    ctx.kk_ok(&cluster.site, "delete", &["--all"])?;
    Ok(())
}
