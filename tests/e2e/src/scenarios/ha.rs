//! Three control planes and etcd on all of them: complete when `kk` reports success, and consistent when one host has no power.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use serde_json::json;

use crate::checks;
use crate::context::Context;
use crate::site::{Site, host_entry, use_control_plane};

/// A lease of the lost leader ends by itself.
const PATIENCE: Duration = Duration::from_mins(1);

pub(super) fn run(ctx: &Context<'_>) -> Result<()> {
    let lab = Site::fresh(ctx, &ctx.dir.join("site"), 3, None)?;
    let site = lab.variant("ha", |cluster| {
        cluster["spec"]["roleGroups"]["control-plane"] = json!(lab.hosts);
        use_control_plane(cluster, &lab.hosts[0]);
    })?;
    ctx.kk_ok(&site, "create", &[])?;
    checks::cluster_is_complete(ctx, &site)?;
    for host in &site.hosts {
        let url =
            format!("curl --silent --insecure --max-time 5 https://{}:6443/readyz", address(&site, host)?);
        let said = ctx.host(host, &url).with_context(|| format!("the API of {host}"))?;
        ensure!(said == "ok", "the API of {host} is `{said}`");
        checks::starts_are_seen_soon(ctx, host)?;
    }
    checks::create_changes_nothing(ctx, &site)?;
    lost_key_comes_back(ctx, &site).context("a key that control planes share")?;

    let lost = site.hosts.last().context("there are hosts")?;
    ctx.run("power-cut", ctx.lab_job(&["down", "--host", lost]))?.ok()?;
    ctx.until("the API takes a change without the third control plane", PATIENCE, || {
        let words = format!("label node {lost} e2e=lost --overwrite");
        Ok(ctx.kubectl(&site, &words).ok())
    })?;
    let impatient = site.variant("impatient", |cluster| host_entry(cluster, lost)["timeout"] = json!(3))?;
    ctx.kk(&impatient, "create", &[])?.expect_code(6)?.expect_said(&[lost])?;
    Ok(())
}

/// The loss has no effect before the next start of an API server, which fails without the key.
fn lost_key_comes_back(ctx: &Context<'_>, site: &Site) -> Result<()> {
    let [first, second, ..] = &site.hosts[..] else { anyhow::bail!("there are three control planes") };
    let look =
        |host: &str| ctx.host(host, "cd /etc/kubernetes/pki && sha256sum sa.key && stat -c '%a %U' sa.key");
    let wanted = look(first)?;
    ctx.host(second, "rm /etc/kubernetes/pki/sa.key")?;
    ctx.kk_ok(site, "create", &[])?;
    ensure!(look(second)? == wanted, "{second} has another sa.key than {first}");
    checks::create_changes_nothing(ctx, site)
}

fn address(site: &Site, host: &str) -> Result<String> {
    let mut cluster = site.read()?;
    Ok(checks::text(&host_entry(&mut cluster, host)["address"]))
}
