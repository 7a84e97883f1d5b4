//! Load balancers of the API that kk installs: haproxy on workers, hosts that all have all roles, and changes of the kind.

mod change;
mod haproxy;
mod three;

use anyhow::{Context as _, Result};
use serde_json::{Value, json};

pub(super) use change::run as run_change;
pub(super) use haproxy::run as run_haproxy;
pub(super) use three::run as run_three;

use super::endpoint;
use crate::checks;
use crate::context::Context;
use crate::process::{Finished, Running};
use crate::site::{Site, host_entry};

/// Content of the lab that these scenarios need in addition to its defaults.
pub(super) const HAPROXY: [&str; 2] = ["--with", "haproxy"];

/// Three control planes and a worker on four hosts.
fn three_and_one(cluster: &mut Value, hosts: &[String]) {
    let (three, worker) = (&hosts[..3], &hosts[3]);
    cluster["spec"]["roleGroups"] = json!({"etcd": three, "control-plane": three, "worker": [worker]});
}

/// The same site with another kind of load balancer.
fn with_balancer(site: &Site, name: &str, kind: &str) -> Result<Site> {
    site.variant(name, |cluster| {
        cluster["spec"]["controlPlaneEndpoint"]["internalLoadbalancer"] = json!(kind);
        cluster["spec"]["controlPlaneEndpoint"]["address"] = json!("");
    })
}

/// The address of a host.
fn address(site: &Site, host: &str) -> Result<String> {
    let mut cluster = site.read()?;
    Ok(checks::text(&host_entry(&mut cluster, host)["address"]))
}

/// The same site, where kubectl runs on another control plane.
fn queried_at(site: &Site, host: &str) -> Site {
    let mut hosts = site.hosts.clone();
    hosts.sort_by_key(|name| name != host);
    Site { hosts, ..site.clone() }
}

/// Every node and every pod in the network of its node uses the API on the node itself, and a create finds nothing to do.
fn uses_itself(ctx: &Context<'_>, site: &Site) -> Result<()> {
    checks::cluster_is_complete(ctx, site)?;
    endpoint::leads(ctx, site, "127.0.0.1")?;
    checks::create_changes_nothing(ctx, site)
}

/// A client on a host that queries the API by its name.
struct Client {
    host: String,
    running: Running,
}

impl Client {
    fn start(ctx: &Context<'_>, host: &str) -> Result<Self> {
        let job = ctx.on_host(host, include_str!("ask_name.sh")).limit(std::time::Duration::from_mins(15));
        Ok(Self { host: host.to_owned(), running: ctx.start("ask-name", job)? })
    }

    /// Ends it. Returns the longest time between two answers in milliseconds, and its output.
    fn stop(self, ctx: &Context<'_>) -> Result<(u64, String)> {
        ctx.host(&self.host, "touch /tmp/asked-name.stop")?;
        let asked = Finished::ok(self.running.wait()?)?;
        let longest = asked.lines().find_map(|line| line.strip_prefix("longest ")?.trim().parse().ok());
        Ok((longest.context("the client did not end")?, asked))
    }
}
