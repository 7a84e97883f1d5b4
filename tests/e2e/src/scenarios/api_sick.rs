//! The API does not answer, or etcd has no quorum: a missing answer never counts as "no". Nothing is initialised again, no
//! kubelet is restarted, and the finding names what could not be queried.

use anyhow::{Context as _, Result, ensure};

use crate::cases::{self, Case};
use crate::checks;
use crate::cluster;
use crate::context::Context;
use crate::site::Site;

struct Sickness {
    name: &'static str,
    hosts: &'static [&'static str],
    begins: &'static str,
    ends: &'static str,
    /// Texts in the messages of `kk` when it fails.
    says: &'static [&'static str],
}

const ALL: &[Sickness] = &[
    Sickness {
        name: "api-server-stopped",
        hosts: &["node1"],
        begins: "pkill -STOP kube-apiserver",
        ends: "pkill -CONT kube-apiserver",
        says: &["the API"],
    },
    Sickness {
        name: "etcd-without-quorum",
        hosts: &["node2", "node3"],
        begins: "pkill -STOP -x etcd",
        ends: "pkill -CONT -x etcd",
        says: &["etcd", "most members must run"],
    },
    Sickness {
        name: "api-answers-with-nothing",
        hosts: &["node1"],
        begins: "iptables -t nat -I OUTPUT -p tcp --dport 6443 -j REDIRECT --to-ports 6449; systemd-run --quiet --collect --unit e2e-empty socat TCP-LISTEN:6449,fork,reuseaddr OPEN:/dev/null; sleep 0.5",
        ends: "iptables -t nat -D OUTPUT -p tcp --dport 6443 -j REDIRECT --to-ports 6449; systemctl stop e2e-empty",
        says: &["the API"],
    },
];

impl Case for Sickness {
    fn name(&self) -> &'static str {
        self.name
    }
}

pub(super) fn run(ctx: &Context<'_>) -> Result<()> {
    cases::each(ctx, ALL, |sickness| one(ctx, &cluster::ensure(ctx)?.site, sickness))
}

fn one(ctx: &Context<'_>, site: &Site, sickness: &Sickness) -> Result<()> {
    let units = checks::invocations(ctx, site)?;
    for host in sickness.hosts {
        ctx.host(host, sickness.begins)?;
    }
    let run = ctx.kk(site, "create", &[]);
    for host in sickness.hosts {
        ctx.host(host, sickness.ends)?;
    }
    let run = run?;
    let did: Vec<String> = run.events.changes().iter().map(ToString::to_string).collect();
    ensure!(did.iter().all(|change| !change.contains("initialise")), "initialised again: {did:?}");
    ensure!(checks::invocations(ctx, site)? == units, "a unit was restarted: {did:?}");
    // The kubelet restarts an API server that hangs. A create that waited for it may succeed, if the cluster is healthy then.
    if run.finished.code == Some(0) {
        checks::cluster_is_complete(ctx, site).context("kk said that the cluster is ready before it was")?;
    } else {
        run.expect_said(sickness.says)?;
    }
    ctx.until("the API answers again", std::time::Duration::from_mins(1), || {
        Ok(checks::nodes_are_ready(ctx, site).ok())
    })?;
    ctx.kk_ok(site, "create", &[]).context("create when the API is well")?;
    checks::cluster_is_complete(ctx, site)
}
