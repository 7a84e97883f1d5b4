//! Hosts limited to a fifth of a processor, 100 ms away: create succeeds in one run.

use std::time::Duration;

use anyhow::Result;

use crate::checks;
use crate::context::Context;
use crate::site::Site;

const LIMIT: Duration = Duration::from_mins(30);

pub(super) fn run(ctx: &Context<'_>) -> Result<()> {
    let site = Site::booted(ctx, &ctx.dir.join("site"), 3, None, &["--cpus", "0.2", "--delay", "100ms"])?;
    ctx.kk_slow(&site, "create", &[], LIMIT)?;
    checks::nodes_are_ready(ctx, &site)
}
