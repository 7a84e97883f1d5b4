//! Clusters of three control planes behind a load balancer, which runs on a fourth host, the worker.

use std::time::Duration;

use anyhow::Result;
use serde_json::json;

use crate::checks;
use crate::context::Context;
use crate::process::Running;
use crate::site::{Site, host_entry};

/// A site for such a cluster on the four hosts of `lab`, and its load balancer, which ends when the value is dropped.
pub(super) fn site(ctx: &Context<'_>, lab: &Site) -> Result<(Site, Running)> {
    let mut cluster = lab.read()?;
    let mut address = |host: &String| checks::text(&host_entry(&mut cluster, host)["address"]);
    let (control_planes, balancer) = (&lab.hosts[..3], &lab.hosts[3]);
    let servers: Vec<String> = control_planes.iter().map(&mut address).collect();
    let endpoint = address(balancer);
    let site = lab.variant("ha", |cluster| {
        cluster["spec"]["roleGroups"] =
            json!({"etcd": control_planes, "control-plane": control_planes, "worker": [balancer]});
        cluster["spec"]["controlPlaneEndpoint"] =
            json!({"domain": "api.lab.local", "address": endpoint, "port": 16443});
    })?;
    Ok((site, balance(ctx, balancer, 16443, &servers)?))
}

/// A load balancer on this port of a host for the API servers at these addresses. It ends when the value is dropped.
pub(super) fn balance(ctx: &Context<'_>, host: &str, port: u16, servers: &[String]) -> Result<Running> {
    let text = format!("port={port} servers='{}'\n{}", servers.join(" "), include_str!("balanced.sh"));
    ctx.start("balance", ctx.on_host(host, &text).limit(Duration::from_mins(30)))
}
