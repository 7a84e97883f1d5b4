//! `kk init registry`: a registry on a host that is a node, too, from a bundle. The cluster pulls from it and nowhere else, a
//! delete of the cluster leaves it, and a delete of the registry leaves the host as it was.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use rustix::process::Signal;
use serde_json::json;

use super::offline::{job, kk, text};
use crate::checks;
use crate::context::Context;
use crate::host_state;
use crate::kk::KkRun;
use crate::site::Site;

/// KubeKey's name for the registry, which only kk can resolve. Its port is 443.
const NAME: &str = "dockerhub.kubekey.local";
const PASSWORD: &str = "lab-registry-1";
const OTHER_PASSWORD: &str = "lab-registry-2";

pub(super) fn run(ctx: &Context<'_>) -> Result<()> {
    let lab = Site::booted(ctx, &ctx.dir.join("site"), 2, None, &["--with", "registry"])?;
    let host = lab.hosts[1].clone();
    let before = host_state::of_all(ctx, &lab.hosts)?;
    let with = |name: &str, password: &str| {
        lab.variant(name, |cluster| {
            let spec = &mut cluster["spec"];
            spec["roleGroups"]["registry"] = json!([host]);
            let auths = json!({NAME: {"username": "lab", "password": password}});
            spec["registry"] = json!({"privateRegistry": format!("{NAME}/lab"), "auths": auths});
        })
    };
    let (site, changed) = (with("registry", PASSWORD)?, with("changed", OTHER_PASSWORD)?);
    // The lab's own registry serves the exported images. A manifest made from the site's own file would query the registry that
    // is not installed yet.
    let (manifest, bundle) = (text(&lab.dir.join("manifest.yaml")), text(&lab.dir.join("bundle.tar.zst")));
    let source =
        lab.variant("source", |cluster| cluster["spec"]["roleGroups"]["registry"] = json!([host]))?;
    kk(ctx, &lab, &["create", "manifest", "-f", &text(&source.file), "-o", &manifest])?.ok()?;
    kk(ctx, &lab, &["artifact", "export", "-m", &manifest, "-o", &bundle, "--workdir", "stock"])?.ok()?;

    let push = |site: &Site| -> Result<KkRun> {
        let (file, from) = (text(&site.file), ["-a", &bundle, "--allow-unsigned", "--format", "json"]);
        let words = [&["artifact", "images", "push", "-f", &file], &from[..]].concat();
        KkRun::of(ctx.start("push", job(ctx, site, &words))?).context("cannot push")
    };
    push(&site)?.expect_code(1)?;
    ctx.kk_nodes(&lab, &["init", "registry"])?.expect_code(3)?.expect_said(&["spec.roleGroups.registry"])?;
    // Killed when the binary exists and the unit does not: the next run continues.
    let words = ["init", "registry", "-a", &bundle, "--allow-unsigned", "-y", "--output", "json"];
    let mut killed = ctx.start("kk-killed", ctx.kk_job(&site, &words))?;
    ctx.await_task(&mut killed, "registry/configure_registry")?;
    killed.signal(Signal::KILL)?;
    ensure!(killed.wait()?.code.is_none(), "kk had ended before it could be killed");
    let init = |site: &Site| ctx.kk_nodes(site, &["init", "registry", "-a", &bundle, "--allow-unsigned"]);
    init(&site)?.expect_code(0)?;
    ensure!(init(&site)?.expect_code(0)?.events.changes().is_empty(), "the second init changed something");
    least_rights(ctx, &host)?;

    push(&site)?.expect_code(0)?;
    ensure!(push(&site)?.expect_code(0)?.events.changes().is_empty(), "the second push sent something");
    ctx.kk_ok(&site, "create", &[])?;
    checks::cluster_is_complete(ctx, &site)?;
    let images = ctx.kubectl(&site, "get pods -A -o jsonpath='{.items[*].spec.containers[*].image}'")?;
    let elsewhere: Vec<&str> =
        images.split_whitespace().filter(|image| !image.starts_with(&format!("{NAME}/lab/"))).collect();
    ensure!(elsewhere.is_empty(), "not from the registry: {elsewhere:?}");
    ensure!(
        ctx.kk(&site, "create", &[])?.expect_code(0)?.events.changes().is_empty(),
        "the second create changed something"
    );

    // Another password reaches the registry, and then the nodes.
    init(&changed)?.expect_code(0)?;
    ensure!(status(ctx, &host, PASSWORD, "443", "GET", "_catalog")? == "401", "the old password still works");
    ctx.kk(&changed, "create", &[])?.expect_code(0)?;
    let image = images.split_whitespace().next().context("no pod has an image")?;
    ctx.host(&lab.hosts[0], &format!("crictl pull {image}"))?;

    // The cluster is deleted, the registry stays; a registry of another cluster is not touched.
    ctx.kk_ok(&changed, "delete", &["--all"])?;
    let pushed = push(&changed)?;
    pushed.expect_code(0)?;
    ensure!(pushed.events.changes().is_empty(), "images were lost with the cluster");
    let other = changed.variant("other", |cluster| cluster["metadata"]["name"] = json!("other"))?;
    let refused = ctx.kk_nodes(&other, &["delete", "registry", "--with-data"])?;
    refused.expect_code(5)?.expect_said(&["its registry belongs to the cluster lab"])?;
    ensure!(refused.events.changes().is_empty(), "another cluster's registry was touched");
    ctx.kk_nodes(&changed, &["delete", "registry"])?.expect_code(0)?;
    ctx.host(
        &host,
        "test -d /mnt/registry/docker && ! test -e /usr/local/bin/registry && ! id registry 2>/dev/null",
    )?;
    init(&changed)?.expect_code(0)?;
    ensure!(
        push(&changed)?.expect_code(0)?.events.changes().is_empty(),
        "images were lost with the registry"
    );
    ctx.kk_nodes(&changed, &["delete", "registry", "--with-data"])?.expect_code(0)?;
    for host in &lab.hosts {
        ctx.host(host, "rm -rf /var/backups/kube_etcd")?;
    }
    host_state::expect_restored(ctx, &before)?;
    let again = ctx.kk_nodes(&changed, &["delete", "registry", "--with-data"])?;
    ensure!(again.expect_code(0)?.events.changes().is_empty(), "the second delete changed something");
    Ok(())
}

/// Status code with which the registry answers the account of the hosts.
fn status(
    ctx: &Context<'_>,
    host: &str,
    password: &str,
    port: &str,
    method: &str,
    path: &str,
) -> Result<String> {
    let curl = "curl -ks -o /dev/null -w '%{http_code}'";
    let answer =
        ctx.host(host, &format!("{curl} -u lab:{password} -X {method} https://127.0.0.1:{port}/v2/{path}"))?;
    Ok(answer.trim().to_owned())
}

/// The registry runs as its own user, only this user can read its key, requests without a password are refused, and hosts can
/// only read.
fn least_rights(ctx: &Context<'_>, host: &str) -> Result<()> {
    ctx.until("the registry runs", Duration::from_secs(20), || {
        let users = ctx.host(host, "ps -o user= -C registry").ok();
        Ok(users.filter(|users| users.split_whitespace().eq(["registry", "registry"])))
    })?;
    let modes = ctx.host(
        host,
        "stat -c '%a %U' /etc/registry/tls.key /etc/registry/htpasswd /etc/registry/htpasswd-push",
    )?;
    ensure!(modes.lines().all(|line| line == "600 registry"), "keys and passwords: {modes}");
    let without = "curl -ks -o /dev/null -w '%{http_code}' https://127.0.0.1/v2/_catalog";
    let answer = ctx.host(host, without)?;
    ensure!(answer.trim() == "401", "without a password it answers {answer}");
    for (port, method, path, expected) in [
        ("443", "GET", "_catalog", "200"),
        ("443", "POST", "lab/pause/blobs/uploads/", "405"),
        ("5443", "POST", "lab/pause/blobs/uploads/", "401"),
    ] {
        let answer = status(ctx, host, PASSWORD, port, method, path)?;
        ensure!(answer == expected, "{method} {path} on port {port}: {answer}");
    }
    Ok(())
}
