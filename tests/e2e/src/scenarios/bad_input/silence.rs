//! A connection that transfers nothing any more in the middle of a run, as after a power cut or behind a firewall that dropped
//! its state: no packet arrives, not even the end of the connection.

use std::time::Duration;

use anyhow::Result;
use serde_json::json;

use crate::context::Context;
use crate::kk::KkRun;
use crate::site::{Site, host_entry};

/// The host that stops responding, and its `timeout` in seconds.
const HOST: &str = "node2";
const TIMEOUT: u64 = 5;
/// Until kk notices it, reconnects, gives up, and the other hosts have finished their tasks.
const PATIENCE: Duration = Duration::from_mins(2);

/// Errors: `kk` waits for ever, or does not name the host.
pub(super) fn in_the_middle(ctx: &Context<'_>, site: &Site) -> Result<()> {
    let site = site.variant("silence", |cluster| host_entry(cluster, HOST)["timeout"] = json!(TIMEOUT))?;
    let mut kk = ctx.kk_start(&site, "create", &[])?;
    // Earlier cases have started etcd and, when their error occurred late, the control plane; no worker has joined.
    ctx.await_task(&mut kk, "nodes/join_worker")?;
    // Both directions: packets to the host and packets from it are dropped.
    ctx.host(HOST, "iptables -I INPUT -s 172.30.0.1 -j DROP; iptables -I OUTPUT -d 172.30.0.1 -j DROP")?;
    ctx.until("kk ends after a host fell silent", PATIENCE, || Ok(kk.has_ended()?.then_some(())))?;
    KkRun::of(kk)?.expect_code(1)?.expect_said(&[HOST])?;
    Ok(())
}
