//! Hosts with two network cards, as in a cloud: the default route is the public network, on which hosts do not reach each
//! other, and the cluster's addresses are in the other one.

use anyhow::Result;

use crate::checks;
use crate::context::Context;
use crate::host_state;
use crate::site::Site;

pub(super) fn run(ctx: &Context<'_>) -> Result<()> {
    let site = Site::booted(ctx, &ctx.dir.join("site"), 3, None, &["--networks", "2"])?;
    let before = host_state::of_all(ctx, &site.hosts)?;
    ctx.kk_ok(&site, "create", &[])?;
    checks::cluster_is_complete(ctx, &site)?;
    checks::service_answers_across_nodes(ctx, &site)?;
    ctx.kk_ok(&site, "delete", &["--all"])?;
    host_state::expect_restored(ctx, &before)
}
