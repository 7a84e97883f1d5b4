//! A running cluster is damaged, one thing at a time: after one create it is healthy, nothing else was touched, and
//! "ready" is true.

mod files;
mod list;

use anyhow::{Context as _, Result, ensure};

use crate::cases::{self, Case};
use crate::checks;
use crate::cluster::{self, Cluster};
use crate::context::Context;
use crate::fingerprint;
use crate::host_state::expect_none;

use files::Known;
use list::{ALL, Damage};

/// Those that CI does, one of each kind.
const IN_CI: [&str; 4] = [
    "certificate-of-an-etcd-member-gone",
    "static-pod-edited",
    "coredns-configuration-gone",
    "data-of-an-etcd-member-gone",
];

/// Hosts whose files are damaged.
const CONTROL_PLANE: &str = "node1";
const WORKER: &str = "node2";

const KUBECTL: &str = "K='kubectl --kubeconfig /etc/kubernetes/admin.conf --cache-dir /tmp/e2e-kubectl'\n";

impl Case for Damage {
    fn name(&self) -> &str {
        self.name
    }
}

/// Two labs share the list.
pub(super) fn run_first(ctx: &Context<'_>) -> Result<()> {
    cases::each(ctx, &ALL[..ALL.len() / 2], |damage| one(ctx, &cluster::ensure(ctx)?, damage))
}

pub(super) fn run_second(ctx: &Context<'_>) -> Result<()> {
    cases::each(ctx, &ALL[ALL.len() / 2..], |damage| one(ctx, &cluster::ensure(ctx)?, damage))?;
    let cluster = cluster::ensure(ctx)?;
    let files = files::left(ctx, &cluster.site, &cluster.before, Known::Together)?;
    let paths = &files[WORKER];
    ensure!(paths.len() > 10, "a create leaves only {paths:?} on {WORKER}");
    Ok(())
}

/// A file that is damaged alone.
struct OneFile {
    name: String,
    host: &'static str,
    breaks: String,
    whole: String,
}

impl Case for OneFile {
    fn name(&self) -> &str {
        &self.name
    }
}

/// All settings of a worker, and each other file of a control plane and of a worker, are deleted, and emptied: one create repairs it.
pub(super) fn run_files(ctx: &Context<'_>) -> Result<()> {
    let cluster = cluster::ensure(ctx)?;
    let settings = &files::left(ctx, &cluster.site, &cluster.before, Known::Together)?[WORKER];
    for breaks in [files::delete(settings), files::empty(settings)] {
        is_repaired(ctx, &cluster, WORKER, &breaks, &files::have_content(settings))?;
    }
    let Cluster { site, before } = cluster;
    let mut files = files::left(ctx, &site, &before, Known::Alone)?;
    let mut damages = Vec::new();
    for host in [CONTROL_PLANE, WORKER] {
        for path in files.remove(host).unwrap_or_default() {
            let path = [path];
            for (how, breaks) in [("gone", files::delete(&path)), ("empty", files::empty(&path))] {
                let (name, whole) = (format!("{host}:{}:{how}", path[0]), files::have_content(&path));
                damages.push(OneFile { name, host, breaks, whole });
            }
        }
    }
    ensure!(damages.len() > 60, "a create leaves only {} files to damage", damages.len() / 2);
    cases::each(ctx, &damages, |one| {
        is_repaired(ctx, &cluster::ensure(ctx)?, one.host, &one.breaks, &one.whole)
    })
}

/// The damages of CI.
pub(super) fn run_some(ctx: &Context<'_>) -> Result<()> {
    let some: Vec<Damage> = ALL.iter().filter(|damage| IN_CI.contains(&damage.name)).copied().collect();
    cases::each(ctx, &some, |damage| one(ctx, &cluster::ensure(ctx)?, damage))
}

fn one(ctx: &Context<'_>, cluster: &Cluster, damage: &Damage) -> Result<()> {
    is_repaired(ctx, cluster, damage.host, damage.breaks, damage.whole)
}

/// Errors: a create does not repair what `breaks` does, or touches anything else.
fn is_repaired(ctx: &Context<'_>, cluster: &Cluster, host: &str, breaks: &str, whole: &str) -> Result<()> {
    let site = &cluster.site;
    let before = fingerprint::of(ctx, site)?;
    ctx.host(host, &format!("{KUBECTL}{breaks}")).context("cannot do the damage")?;
    ctx.kk_ok(site, "create", &[])?;
    ctx.host(host, &format!("{KUBECTL}{whole}")).context("it is not repaired")?;
    checks::cluster_is_complete(ctx, site).context("kk said that the cluster is ready before it was")?;
    let lines = fingerprint::differences(&before, &fingerprint::of(ctx, site)?);
    expect_none(ctx, "the CA of the cluster differs from the CA in", &lines)?;
    let again = ctx.kk_ok(site, "create", &[])?;
    let changes: Vec<String> = again.events.changes().iter().map(ToString::to_string).collect();
    expect_none(ctx, "create still has something to do", &changes)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::{ALL, IN_CI};

    #[test]
    fn damages_have_names_of_their_own() {
        let names: BTreeSet<&str> = ALL.iter().map(|damage| damage.name).collect();
        assert_eq!(names.len(), ALL.len());
        assert!(IN_CI.iter().all(|name| names.contains(name)));
    }
}
