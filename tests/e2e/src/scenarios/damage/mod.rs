//! A running cluster is damaged, one thing at a time: after one create it is healthy, nothing else was touched, and
//! "ready" is true.

mod list;

use anyhow::{Context as _, Result};

use crate::cases::{self, Case};
use crate::checks;
use crate::cluster::{self, Cluster};
use crate::context::Context;
use crate::fingerprint;
use crate::host_state::expect_none;

use list::{ALL, Damage};

/// Those that CI does, one of each kind.
const IN_CI: [&str; 4] = [
    "certificate-of-an-etcd-member-gone",
    "static-pod-edited",
    "coredns-configuration-gone",
    "data-of-an-etcd-member-gone",
];

const KUBECTL: &str = "K='kubectl --kubeconfig /etc/kubernetes/admin.conf --cache-dir /tmp/e2e-kubectl'\n";

impl Case for Damage {
    fn name(&self) -> &'static str {
        self.name
    }
}

/// Two labs share the list.
pub(super) fn run_first(ctx: &Context<'_>) -> Result<()> {
    cases::each(ctx, &ALL[..ALL.len() / 2], |damage| one(ctx, &cluster::ensure(ctx)?, damage))
}

pub(super) fn run_second(ctx: &Context<'_>) -> Result<()> {
    cases::each(ctx, &ALL[ALL.len() / 2..], |damage| one(ctx, &cluster::ensure(ctx)?, damage))
}

/// The damages of CI.
pub(super) fn run_some(ctx: &Context<'_>) -> Result<()> {
    let some: Vec<Damage> = ALL.iter().filter(|damage| IN_CI.contains(&damage.name)).copied().collect();
    cases::each(ctx, &some, |damage| one(ctx, &cluster::ensure(ctx)?, damage))
}

fn one(ctx: &Context<'_>, cluster: &Cluster, damage: &Damage) -> Result<()> {
    let site = &cluster.site;
    let before = fingerprint::of(ctx, site)?;
    ctx.host(damage.host, &format!("{KUBECTL}{}", damage.breaks)).context("cannot do the damage")?;
    ctx.kk_ok(site, "create", &[])?;
    ctx.host(damage.host, &format!("{KUBECTL}{}", damage.whole)).context("it is not repaired")?;
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
