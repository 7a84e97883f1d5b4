//! Hosts have other addresses, and create moves them, also when a run is killed in the middle. The moved hosts are first a
//! worker, then the only control plane, which is the only member of etcd, so that no API answers before the move. Other commands
//! refuse to run before it. With three control planes that are members of etcd, one after the other moves, and the data is
//! available all the time.

use anyhow::{Result, bail, ensure};
use rustix::process::Signal;
use serde_json::json;

use crate::checks;
use crate::context::Context;
use crate::site::{Site, host_entry, use_control_plane};

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
    ctx.await_task(&mut killed, "balancer/finish_moves")?;
    killed.signal(Signal::KILL)?;
    drop(killed.wait()?);
    is_moved(ctx, &before, &after, third)?;
    checks::service_answers_across_nodes(ctx, &after)?;
    ensure!(
        of_hosts(&checks::invocations(ctx, &after)?, &[first, second]) == others,
        "a unit of a node that has not moved was restarted"
    );
    let static_pod =
        |pod: &&String| pod.split(' ').next().is_some_and(|name| name.ends_with(&format!("-{first}")));
    for (pod, count) in checks::restarts(ctx, &after)?.iter().filter(|(pod, _)| static_pod(pod)) {
        ensure!(restarts.get(pod) == Some(count), "{pod} was restarted");
    }
    the_control_plane_moves(ctx, &after)
}

/// Neither etcd nor the API works until it is moved.
fn the_control_plane_moves(ctx: &Context<'_>, before: &Site) -> Result<()> {
    let first = before.control_plane().to_owned();
    ctx.kubectl(before, "create configmap kept --from-literal=a=b")?;
    let identity = checks::etcd_identity(ctx, before)?;
    let after = moved(ctx, before, &first)?;
    ctx.kk_nodes(&after, &["certs", "renew"])?
        .expect_code(5)?
        .expect_said(&["kk create cluster moves it"])?;
    let words = ["create", "cluster", "-y", "--output", "json"];
    for (job, task) in [
        ("kk-killed-1", "etcd/start_etcd"),
        ("kk-killed-2", "control-plane/renew_certificates"),
        ("kk-killed-3", "balancer/finish_moves"),
    ] {
        let mut killed = ctx.start(job, ctx.kk_job(&after, &words))?;
        ctx.await_task(&mut killed, task)?;
        killed.signal(Signal::KILL)?;
        ensure!(killed.wait()?.code.is_none(), "kk had ended before it could be killed in {task}");
    }
    is_moved(ctx, before, &after, &first)?;
    checks::service_answers_across_nodes(ctx, &after)?;
    ensure!(checks::etcd_identity(ctx, &after)? == identity, "etcd is another one");
    ctx.kubectl(&after, "delete configmap kept")?;
    Ok(())
}

/// Three control planes, each a member of etcd.
pub(super) fn run_ha(ctx: &Context<'_>) -> Result<()> {
    let lab = Site::fresh(ctx, &ctx.dir.join("site"), 4, None)?;
    let [first, second, third, worker] = &lab.hosts[..] else { bail!("four hosts") };
    let mut site = lab.variant("before", |cluster| {
        let three = json!([first, second, third]);
        cluster["spec"]["roleGroups"] = json!({"etcd": three, "control-plane": three, "worker": [worker]});
        use_control_plane(cluster, first);
    })?;
    ctx.kk_ok(&site, "create", &[])?;
    ctx.kubectl(&site, "create configmap kept --from-literal=a=b")?;
    let identity = checks::etcd_identity(ctx, &site)?;
    for host in [third, first] {
        let after = moved(ctx, &site, host)?;
        is_moved(ctx, &site, &after, host)?;
        ensure!(checks::etcd_identity(ctx, &after)? == identity, "etcd is another one");
        ctx.kubectl(&after, "get configmap kept")?;
        site = after;
    }
    Ok(())
}

/// One create moves the host, everything works, and no component knows the old address any more.
fn is_moved(ctx: &Context<'_>, before: &Site, after: &Site, host: &str) -> Result<()> {
    ctx.kk_ok(after, "create", &[])?;
    checks::cluster_is_complete(ctx, after)?;
    let old = address(before, host)?;
    let known = ctx.kubectl(after, "get nodes,pods,endpointslices -A -o yaml")?;
    ensure!(!known.contains(&old), "the API knows {host} at {old}:\n{known}");
    for one in &after.hosts {
        // etcd never reads its initial settings (/etc/etcd-initial.env) again.
        let files = "/etc/hosts /etc/etcd.env /etc/etcd-moving /etc/kubernetes /var/lib/kubelet/config.yaml /etc/systemd/system";
        // The replaced settings are kept next to those that were applied.
        let find = format!("grep -rlwF --exclude=*.replaced {old} {files} 2>/dev/null || true");
        let left = ctx.host(one, &find)?;
        ensure!(left.is_empty(), "{one} knows {host} at {old}: {left}");
    }
    checks::create_changes_nothing(ctx, after)?;
    Ok(())
}

fn of_hosts(units: &std::collections::BTreeMap<String, String>, hosts: &[&String]) -> Vec<(String, String)> {
    let of = |unit: &&String| hosts.iter().any(|host| unit.contains(*host));
    units.iter().filter(|(unit, _)| of(unit)).map(|(unit, id)| (unit.clone(), id.clone())).collect()
}

fn address(site: &Site, host: &str) -> Result<String> {
    Ok(checks::text(&host_entry(&mut site.read()?, host)["address"]))
}

/// Replaces the address of a host by another one in the same network.
fn moved(ctx: &Context<'_>, site: &Site, host: &str) -> Result<Site> {
    let old = address(site, host)?;
    let Some((network, number)) = old.rsplit_once('.') else { bail!("{old} is no address") };
    let new = format!("{network}.{}", number.parse::<u8>()? + 40);
    ctx.host(
        host,
        &format!(
            "set -e; line=$(ip -o -4 addr show to {old}); card=$(echo $line | cut -d ' ' -f 2); \
             prefix=$(echo $line | sed 's|.* inet [^/]*/\\([0-9]*\\) .*|\\1|'); ip addr add {new}/$prefix dev $card; ip addr del {old}/$prefix dev $card"
        ),
    )?;
    site.variant(&format!("{host}-moved"), |cluster| {
        let entry = host_entry(cluster, host);
        entry["address"] = json!(new);
        entry["internalAddress"] = json!(new);
        let endpoint = &mut cluster["spec"]["controlPlaneEndpoint"]["address"];
        if *endpoint == old.as_str() {
            *endpoint = json!(new);
        }
    })
}
