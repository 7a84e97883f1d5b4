//! Three fresh hosts become a cluster: etcd on all three, one control plane, two workers.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use anyhow::{Context as _, Result, ensure};

use crate::checks;
use crate::cluster;
use crate::context::Context;
use crate::process::Job;
use crate::site::Site;

pub(super) fn run(ctx: &Context<'_>) -> Result<()> {
    let cluster = cluster::create_fresh(ctx)?;
    checks::cluster_is_complete(ctx, &cluster.site).context("kk said it was done before it was")?;
    let identity = checks::etcd_identity(ctx, &cluster.site)?;
    for host in &cluster.site.hosts {
        ensure!(identity.contains(host), "{host} is no member of etcd: {identity}");
    }
    checks::starts_are_seen_soon(ctx, cluster.site.control_plane())?;
    own_kubeconfig_works(ctx, &cluster.site)?;
    checks::service_answers_across_nodes(ctx, &cluster.site)
}

/// The kubeconfig that `kk` writes on the control machine is readable only by its owner, and works.
fn own_kubeconfig_works(ctx: &Context<'_>, site: &Site) -> Result<()> {
    let name = site.read()?["metadata"]["name"].as_str().context("a cluster has a name")?.to_owned();
    let file = site.workdir().join(name).join("kubeconfig");
    let mode =
        fs::metadata(&file).with_context(|| format!("{} is not there", file.display()))?.permissions().mode();
    ensure!(mode & 0o777 == 0o600, "{} has mode {mode:o}", file.display());
    // The address in it is a name of the hosts' /etc/hosts, so it is used there.
    let text = fs::read_to_string(&file)?;
    let job = ctx.on_host(
        site.control_plane(),
        "exec kubectl --cache-dir /tmp/e2e-kubectl --kubeconfig /dev/stdin get nodes -o name",
    );
    let nodes = ctx.run("kubeconfig", Job::stdin(job, text))?.ok()?;
    ensure!(nodes.lines().count() == site.hosts.len(), "by kk's kubeconfig there are these nodes:\n{nodes}");
    Ok(())
}
