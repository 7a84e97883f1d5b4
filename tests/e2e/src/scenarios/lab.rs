//! `kk-lab down` leaves nothing of the lab behind, whatever happened to it: kk-lab's own test, which needs a lab that
//! nobody uses and so runs only here.

use std::time::Duration;

use anyhow::{Result, ensure};

use crate::context::Context;
use crate::process::Job;

pub(super) fn run(ctx: &Context<'_>) -> Result<()> {
    ctx.shared.replace(None);
    let words = ["test", "--quiet", "--package", "kk-lab", "--test", "leaves_nothing", "--", "--ignored"];
    let job = Job::new("cargo").args(words).folder(env!("CARGO_MANIFEST_DIR").as_ref());
    let said = ctx.run("leaves-nothing", job.limit(Duration::from_mins(20)))?.ok()?;
    ensure!(!said.contains("running 0 tests"), "kk-lab has no test of what it leaves behind:\n{said}");
    Ok(())
}
