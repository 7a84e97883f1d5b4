//! `kk status`: a healthy cluster gives exit code 0 and no drift. A missing file, a host without power and a stopped kubelet give
//! another exit code, and each is reported. Nothing is written on the hosts, and no run is recorded.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};

use crate::context::Context;
use crate::site::{Site, host_entry};
use crate::{checks, cluster};

/// Something that a create writes again.
const FILE: &str = "/etc/sysctl.d/99-kubekey.conf";

pub(super) fn run(ctx: &Context<'_>) -> Result<()> {
    let site = cluster::ensure(ctx)?.site;
    let last = site.hosts.last().context("no host")?;
    nothing_is_written(ctx, &site)?;
    let (code, status) = status(ctx, &site)?;
    ensure!(code == 0 && drift(&status).is_empty(), "code {code}, of a cluster that is well: {status:#}");
    let healthy = list(&status["etcd"]).filter(|member| member["healthy"] == true).count();
    ensure!(healthy == site.hosts.len(), "members of etcd: {}", status["etcd"]);
    for host in &site.hosts {
        ensure!(state_of(&status, host) == "ready", "{host} is {}", state_of(&status, host));
    }

    ctx.host(last, &format!("test -s {FILE}; rm {FILE}"))?;
    let (code, changed) = self::status(ctx, &site)?;
    let drift = drift(&changed);
    ensure!(code == 1 && !drift.is_empty(), "code {code}, and a file is gone: {changed:#}");
    let hosts: Vec<&Value> = list(&changed["drift"]).flat_map(|task| list(&task["hosts"])).collect();
    ensure!(hosts.iter().all(|host| *host == last), "the file is gone on {last} only: {drift:?}");
    ctx.kk_ok(&site, "create", &[])?;

    ctx.host(last, "systemctl stop kubelet")?;
    let (code, stopped) = self::status(ctx, &site)?;
    ensure!(code == 1, "code {code}, and a kubelet has stopped: {stopped:#}");
    ctx.host(last, "systemctl start kubelet")?;

    let impatient = site.variant("impatient", |cluster| host_entry(cluster, last)["timeout"] = json!(3))?;
    ctx.power(last, "off")?;
    // The other members may have to agree on a leader first.
    ctx.until("the API answers without the host", Duration::from_mins(2), || {
        let (code, dark) = self::status(ctx, &impatient)?;
        ensure!(code == 1 && state_of(&dark, last) == "silent", "code {code}, without {last}: {dark:#}");
        Ok((dark["api_answers"] == true).then_some(()))
    })?;
    ctx.power(last, "on")?;
    // The API has the report from before the outage for up to 40 s: its first answer about the host may be out of date.
    ctx.until("all is well again, and kk says so in words", Duration::from_mins(3), || {
        let text = ctx.run("kk-status-text", ctx.kk_job(&site, &["status"]))?;
        let says_so = text.stdout.contains("a create would change nothing");
        ensure!(text.code != Some(0) || says_so, "`kk status` has exit code 0 and says:\n{}", text.stdout);
        Ok((text.code == Some(0)).then_some(()))
    })?;
    checks::cluster_is_complete(ctx, &site)
}

fn nothing_is_written(ctx: &Context<'_>, site: &Site) -> Result<()> {
    let before = checks::invocations(ctx, site)?;
    let runs = || std::fs::read_dir(site.workdir().join("lab/runs")).map_or(0, Iterator::count);
    let recorded = runs();
    for host in &site.hosts {
        ctx.host(host, "touch /run/e2e-before; sleep 0.02")?;
    }
    status(ctx, site)?;
    for host in &site.hosts {
        // The memory of checksums may grow at any look.
        let written = ctx.host(
            host,
            "find /etc /usr /opt /root /home -xdev -newer /run/e2e-before -not -type d -not -path /etc/kubekey/sums; rm /run/e2e-before",
        )?;
        ensure!(written.is_empty(), "a look wrote files on {host}:\n{written}");
    }
    ensure!(runs() == recorded, "a look was recorded as a run");
    ensure!(checks::invocations(ctx, site)? == before, "a look restarted something");
    Ok(())
}

/// The exit code, and what it printed.
pub(super) fn status(ctx: &Context<'_>, site: &Site) -> Result<(i32, Value)> {
    let finished = ctx.run("kk-status", ctx.kk_job(site, &["status", "--output", "json"]))?;
    let code = finished.code.context("kk status was killed")?;
    let status = serde_json::from_str(&finished.stdout).with_context(|| finished.stderr.clone())?;
    Ok((code, status))
}

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

fn drift(status: &Value) -> Vec<String> {
    list(&status["drift"]).map(|task| format!("{}/{}", task["module"], task["task"])).collect()
}

pub(super) fn state_of(status: &Value, node: &str) -> String {
    let found = list(&status["nodes"]).find(|one| one["name"] == node);
    found.map_or_else(String::new, |one| checks::text(&one["state"]))
}
