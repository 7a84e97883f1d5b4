//! `kk certs check-expiration` shows the certificates on the hosts, and `kk certs renew` renews valid ones: one by its name, then
//! all, by a run that is killed and a second run that continues. Only the pods of the control plane restart.

use std::collections::BTreeSet;

use anyhow::{Context as _, Result, ensure};
use rustix::process::Signal;
use serde_json::Value;

use super::certificates::{VALID, pods};
use crate::context::Context;
use crate::host_state::expect_none;
use crate::site::Site;
use crate::{checks, cluster};

/// A line for each certificate that `kk certs renew` knows: its file and its fingerprint.
const FINGERPRINTS: &str = "
print() { echo \"$1 $(openssl x509 -noout -fingerprint -sha256)\"; }
pki=/etc/kubernetes/pki etcd=/etc/ssl/etcd/ssl
for file in $pki/apiserver.crt $pki/apiserver-kubelet-client.crt $pki/front-proxy-client.crt $etcd/member-node1.pem $etcd/apiserver-etcd-client.pem; do
    print $file <$file
done
for file in /etc/kubernetes/admin.conf /etc/kubernetes/super-admin.conf /etc/kubernetes/controller-manager.conf /etc/kubernetes/scheduler.conf /root/.kube/config; do
    sed -n 's/^ *client-certificate-data: *//p' $file | base64 -d | print $file
done
";

pub(super) fn run(ctx: &Context<'_>) -> Result<()> {
    let site = cluster::ensure(ctx)?.site;
    all_are_shown(ctx, &site).context("kk certs check-expiration")?;
    let before = ctx.host(site.control_plane(), FINGERPRINTS)?;
    let pods_before = pods(ctx, &site)?;
    let unknown = ctx.kk_nodes(&site, &["certs", "renew", "no-such-certificate"])?;
    ensure!(unknown.finished.code != Some(0), "a certificate that nobody knows was renewed");
    unknown.expect_said(&["no-such-certificate"])?;
    ensure!(ctx.host(site.control_plane(), FINGERPRINTS)? == before, "an unknown name has renewed something");

    ctx.kk_nodes(&site, &["certs", "renew", "scheduler.conf"])?.expect_code(0)?;
    let one = ctx.host(site.control_plane(), FINGERPRINTS)?;
    let others: Vec<_> = lines(&one).difference(&lines(&before)).cloned().collect();
    ensure!(matches!(&others[..], [one] if one.contains("scheduler.conf")), "these are new: {others:?}");

    // Killed in the middle: the next run continues.
    let words = ["certs", "renew", "-y", "--output", "json"];
    let mut killed = ctx.start("kk-renew-killed", ctx.kk_job(&site, &words))?;
    ctx.await_task(&mut killed, "control-plane/renew_certificates")?;
    killed.signal(Signal::KILL)?;
    ensure!(killed.wait()?.code.is_none(), "kk had ended before it could be killed");
    ctx.kk_nodes(&site, &["certs", "renew"])?.expect_code(0)?;
    let all = ctx.host(site.control_plane(), FINGERPRINTS)?;
    let kept: Vec<_> = lines(&all).intersection(&lines(&one)).cloned().collect();
    expect_none(ctx, "it is not new", &kept)?;

    for host in &site.hosts {
        ctx.host(host, VALID)?;
    }
    checks::cluster_is_complete(ctx, &site)?;
    let pods_after = pods(ctx, &site)?;
    ensure!(pods_before == pods_after, "pods restarted: {pods_before:?} -> {pods_after:?}");
    let again = ctx.kk_ok(&site, "create", &[])?;
    let changes: Vec<String> = again.events.changes().iter().map(ToString::to_string).collect();
    expect_none(ctx, "create still has something to do", &changes)
}

/// The certificates of the control plane, of etcd and of kubelets are shown, with their remaining days.
fn all_are_shown(ctx: &Context<'_>, site: &Site) -> Result<()> {
    let words = ["certs", "check-expiration", "--output", "json"];
    let shown = ctx.run("kk-check-expiration", ctx.kk_job(site, &words))?.ok()?;
    let shown: Vec<Value> = serde_json::from_str(&shown)?;
    let days = |host: &str, name: &str| {
        let found = shown.iter().find(|one| one["host"] == host && one["name"] == name);
        found.and_then(|one| one["days"].as_i64()).with_context(|| format!("{name} of {host} is not shown"))
    };
    for host in &site.hosts {
        for name in ["etcd-member", "kubelet-client"] {
            ensure!(days(host, name)? > 300, "{name} of {host} ends before long");
        }
    }
    for name in
        ["apiserver", "apiserver-kubelet-client", "front-proxy-client", "admin.conf", "scheduler.conf"]
    {
        ensure!(days(site.control_plane(), name)? > 300, "{name} ends before long");
    }
    ensure!(days(site.control_plane(), "ca")? > 3000, "a CA is valid for ten years");
    let ends: Vec<i64> = shown.iter().filter_map(|one| one["days"].as_i64()).collect();
    ensure!(ends.is_sorted(), "not the soonest first: {ends:?}");
    let table = ctx.run("kk-check-expiration-text", ctx.kk_job(site, &words[..2]))?.ok()?;
    ensure!(table.lines().count() == shown.len() + 1, "the table has other rows:\n{table}");
    Ok(())
}

fn lines(text: &str) -> BTreeSet<String> {
    text.lines().map(str::to_owned).collect()
}
