//! The cluster that scenarios share: created when the first scenario needs it, kept while it is healthy.

use std::collections::BTreeMap;

use anyhow::Result;

use crate::checks;
use crate::context::Context;
use crate::host_state::{self, HostState};
use crate::site::Site;

/// Hosts of the shared cluster.
const HOSTS: u8 = 3;

/// A running cluster.
#[derive(Clone, Debug)]
pub(crate) struct Cluster {
    pub(crate) site: Site,
    /// The state of each host before `kk` touched it.
    pub(crate) before: BTreeMap<String, HostState>,
}

/// Boots fresh hosts, records their state, and creates a cluster on them for all scenarios that follow.
pub(crate) fn create_fresh(ctx: &Context<'_>) -> Result<Cluster> {
    let site = Site::fresh(ctx, &ctx.tools.shared_cluster(), HOSTS, None)?;
    let before = host_state::of_all(ctx, &site.hosts)?;
    ctx.kk_ok(&site, "create", &[])?;
    let cluster = Cluster { site, before };
    ctx.shared.replace(Some(cluster.clone()));
    Ok(cluster)
}

/// The shared cluster if it exists and is healthy, else a new one.
pub(crate) fn ensure(ctx: &Context<'_>) -> Result<Cluster> {
    let there = ctx.shared.borrow().clone();
    match there {
        Some(cluster) if checks::nodes_are_ready(ctx, &cluster.site).is_ok() => Ok(cluster),
        _ => create_fresh(ctx),
    }
}
