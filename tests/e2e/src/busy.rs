//! Puts other load on all processors, so that scenarios run on a slow and irregular machine.

use std::thread::available_parallelism;
use std::time::Duration;

use anyhow::Result;

use crate::context::Context;
use crate::process::{Job, Running};

/// A shell that counts, one for each processor, until the returned value is dropped.
pub(crate) fn begin(ctx: &Context<'_>) -> Result<Vec<Running>> {
    let count = available_parallelism()?.get();
    let job = Job::new("sh").args(["-c", "while :; do :; done"]).limit(Duration::from_hours(24));
    (0..count).map(|_| ctx.start("busy", job.clone())).collect()
}
