//! A worker has got another address: create moves it, also when a run is killed in the middle. A control plane with another
//! address is refused before the first change.

use anyhow::{Result, bail, ensure};
use rustix::process::Signal;
use serde_json::json;

use crate::checks;
use crate::context::Context;
use crate::site::{Site, host_entry};

pub(super) fn run(ctx: &Context<'_>) -> Result<()> {
    let lab = Site::fresh(ctx, &ctx.dir.join("site"), 3, None)?;
    let [first, second, third] = &lab.hosts[..] else { bail!("three hosts") };
    let before = lab.variant("before", |cluster| cluster["spec"]["roleGroups"]["etcd"] = json!([first]))?;
    ctx.kk_ok(&before, "create", &[])?;
    let others = of_hosts(&checks::invocations(ctx, &before)?, &[first, second]);
    let restarts = checks::restarts(ctx, &before)?;

    let after = moved(ctx, &before, third)?;
    let mut killed =
        ctx.start("kk-create-killed", ctx.kk_job(&after, &["create", "cluster", "-y", "--output", "json"]))?;
    ctx.await_task(&mut killed, "nodes/finish_moves")?;
    killed.signal(Signal::KILL)?;
    drop(killed.wait()?);
    ctx.kk_ok(&after, "create", &[])?;
    checks::cluster_is_complete(ctx, &after)?;
    checks::service_answers_across_nodes(ctx, &after)?;
    let (old, new) = (address(&before, third)?, address(&after, third)?);
    let known = ctx.kubectl(&after, "get nodes,pods -A -o wide")?;
    ensure!(known.contains(&new) && !known.contains(&old), "somebody knows {third} at {old}:\n{known}");
    let flannel = ctx.kubectl(&after, &format!("get node {third} -o yaml"))?;
    ensure!(!flannel.contains(&old), "flannel knows {third} at {old}");
    ensure!(
        of_hosts(&checks::invocations(ctx, &after)?, &[first, second]) == others,
        "a unit of a node that has not moved was restarted"
    );
    let static_pod =
        |pod: &&String| pod.split(' ').next().is_some_and(|name| name.ends_with(&format!("-{first}")));
    for (pod, count) in checks::restarts(ctx, &after)?.iter().filter(|(pod, _)| static_pod(pod)) {
        ensure!(restarts.get(pod) == Some(count), "{pod} was restarted");
    }
    let again = ctx.kk_ok(&after, "create", &[])?;
    ensure!(again.events.finished()?.changed == 0, "a create afterwards changed something");

    let wrong = moved(ctx, &after, first)?;
    let refused = ctx.kk(&wrong, "create", &[])?;
    refused.expect_code(5)?.expect_said(&[first, "its API server is at", "kk delete node"])?;
    Ok(())
}

fn of_hosts(units: &std::collections::BTreeMap<String, String>, hosts: &[&String]) -> Vec<(String, String)> {
    let of = |unit: &&String| hosts.iter().any(|host| unit.contains(*host));
    units.iter().filter(|(unit, _)| of(unit)).map(|(unit, id)| (unit.clone(), id.clone())).collect()
}

fn address(site: &Site, host: &str) -> Result<String> {
    Ok(checks::text(&host_entry(&mut site.read()?, host)["address"]))
}

/// Gives a host another address in the same network, and none of before. A control plane keeps the one of before, too.
fn moved(ctx: &Context<'_>, site: &Site, host: &str) -> Result<Site> {
    let old = address(site, host)?;
    let Some((network, number)) = old.rsplit_once('.') else { bail!("{old} is no address") };
    let new = format!("{network}.{}", number.parse::<u8>()? + 40);
    let keeps = host == site.control_plane();
    let remove = if keeps { String::new() } else { format!("ip addr del {old}/$prefix dev $card") };
    ctx.host(
        host,
        &format!(
            "set -e; line=$(ip -o -4 addr show to {old}); card=$(echo $line | cut -d ' ' -f 2); \
             prefix=$(echo $line | sed 's|.* inet [^/]*/\\([0-9]*\\) .*|\\1|'); ip addr add {new}/$prefix dev $card; {remove}"
        ),
    )?;
    site.variant(&format!("{host}-moved"), |cluster| {
        let entry = host_entry(cluster, host);
        entry["address"] = json!(new);
        entry["internalAddress"] = json!(new);
    })
}
