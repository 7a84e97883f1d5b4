//! The file that `kk` writes from a running cluster describes the cluster: a create with it changes nothing.

use std::fs;

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;

use crate::checks;
use crate::cluster;
use crate::context::Context;
use crate::site::host_entry;

/// Settings that the API of a cluster does not store.
const ELSEWHERE: [&str; 2] = ["download", "registry"];

pub(super) fn run(ctx: &Context<'_>) -> Result<()> {
    let site = cluster::ensure(ctx)?.site;
    let units = checks::invocations(ctx, &site)?;
    let lab = site.read()?;
    let name = lab["metadata"]["name"].as_str().context("a cluster has a name")?;

    // On a control plane there are kubectl and a kubeconfig.
    let write = format!(
        "cat >/tmp/kk; chmod 755 /tmp/kk
         exec /tmp/kk create config --from-cluster --name {name} --kubeconfig /etc/kubernetes/admin.conf -f -"
    );
    let job = ctx.on_host(site.control_plane(), &write).stdin_file(&ctx.tools.kk);
    let written = ctx.run("kk-create-config", job);
    ctx.host(site.control_plane(), "rm -rf /tmp/kk")?;
    let text = written?.ok()?;
    fs::write(ctx.dir.join("from-cluster.yaml"), &text)?;
    let read: Value = serde_saphyr::from_str(&text).context("the file is no YAML")?;

    let site = site.variant("from-cluster", |cluster| {
        *cluster = read.clone();
        let mut original = lab.clone();
        for host in &site.hosts {
            let access = host_entry(&mut original, host);
            for field in ["address", "user", "password", "privateKeyPath"] {
                if !access[field].is_null() {
                    host_entry(cluster, host)[field] = access[field].clone();
                }
            }
        }
        for section in ELSEWHERE {
            cluster["spec"][section] = original["spec"][section].clone();
        }
        // The file names the versions of the cluster; the mirror has only the versions of the lab.
        let mut versions = original["spec"]["components"].clone();
        for (component, version) in read["spec"]["components"].as_object().into_iter().flatten() {
            versions[component] = version.clone();
        }
        cluster["spec"]["components"] = versions;
    })?;
    let missing: Vec<&String> =
        site.hosts.iter().filter(|host| !text.contains(&format!("name: {host}\n"))).collect();
    ensure!(missing.is_empty(), "the file lacks the hosts {missing:?}:\n{text}");
    checks::create_changes_nothing(ctx, &site)
        .with_context(|| format!("the file that was written from the cluster:\n{text}"))?;
    ensure!(checks::invocations(ctx, &site)? == units, "something restarted");
    fs::remove_file(&site.file)?;
    Ok(())
}
