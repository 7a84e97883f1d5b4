//! All members of etcd lose their data. A snapshot restores the objects, also when the restore is killed in its middle. A
//! snapshot that is damaged or from another cluster changes nothing.

use std::fs;

use anyhow::{Context as _, Result, ensure};
use rustix::process::Signal;

use crate::context::Context;
use crate::site::Site;
use crate::{checks, cluster};

/// Of a cluster whose namespace kube-system has another UID.
const OTHER: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../crates/kk-cluster/src/capabilities/etcd_restore/content/snapshot.db"
);

pub(super) fn run(ctx: &Context<'_>) -> Result<()> {
    let cluster = cluster::ensure(ctx)?;
    let site = &cluster.site;
    members_are_well(ctx, site)?;

    ctx.kubectl(site, "create configmap before --from-literal=a=b")?;
    ctx.kk_nodes(site, &["etcd", "snapshot"])?.expect_code(0)?;
    let snapshot = newest(site)?;
    ctx.kubectl(site, "create configmap after --from-literal=a=b")?;

    let damaged = format!("{}/damaged.db", ctx.dir.display());
    let whole = fs::read(&snapshot)?;
    fs::write(&damaged, &whole[..whole.len() / 2])?;
    let identity = checks::etcd_identity(ctx, site)?;
    ctx.kk_nodes(site, &["etcd", "restore", "--snapshot", &damaged])?
        .expect_code(3)?
        .expect_said(&["it is cut off or damaged"])?;
    ctx.kk_nodes(site, &["etcd", "restore", "--snapshot", OTHER])?
        .expect_code(5)?
        .expect_said(&["the snapshot is from another cluster"])?;
    ensure!(checks::etcd_identity(ctx, site)? == identity, "a snapshot that was refused has changed etcd");
    for host in &site.hosts {
        let left =
            ctx.host(host, "[ ! -e /var/lib/kubekey-restore ] || find /var/lib/kubekey-restore -type f")?;
        ensure!(left.is_empty(), "{host} still has {left}");
    }

    for host in &site.hosts {
        ctx.host(host, "systemctl stop etcd; rm -rf /var/lib/etcd/member")?;
    }
    let words = ["etcd", "restore", "--snapshot", &snapshot, "-y", "--output", "json"];
    let kill = |job: &str, task: &str| -> Result<()> {
        let mut killed = ctx.start(job, ctx.kk_job(site, &words))?;
        ctx.await_task(&mut killed, task)?;
        killed.signal(Signal::KILL)?;
        ensure!(killed.wait()?.code.is_none(), "kk had ended before it could be killed in {task}");
        Ok(())
    };
    // Members may have different histories now: only a restore may continue.
    kill("kk-killed-1", "etcd-restore/restore_members")?;
    ctx.kk(site, "create", &[])?.expect_code(5)?.expect_said(&["a restore of etcd was started"])?;
    // All members have the snapshot now: a create does the rest.
    kill("kk-killed-2", "etcd-restore/start_api_servers")?;
    ctx.kk_ok(site, "create", &[])?;
    checks::cluster_is_complete(ctx, site)?;
    ctx.kubectl(site, "get configmap before")?;
    ensure!(ctx.kubectl(site, "get configmap after").is_err(), "what came after the snapshot is there");
    ctx.kubectl(site, "delete configmap before")?;
    checks::create_changes_nothing(ctx, site)?;

    // Without a file, the newest backup on the hosts is restored.
    ctx.kk_nodes(site, &["etcd", "restore"])?.expect_code(0)?;
    checks::cluster_is_complete(ctx, site)?;
    ctx.kubectl(site, "get configmap before")?;
    ctx.kubectl(site, "delete configmap before")?;
    Ok(())
}

/// Deletes an object that the newest snapshot contains, and restores it, without a failure on the way.
pub(super) fn run_newest(ctx: &Context<'_>) -> Result<()> {
    let site = &cluster::ensure(ctx)?.site;
    members_are_well(ctx, site)?;
    ctx.kubectl(site, "create configmap kept --from-literal=a=b")?;
    ctx.kk_nodes(site, &["etcd", "snapshot"])?.expect_code(0)?;
    ctx.kubectl(site, "delete configmap kept")?;
    ctx.kubectl(site, "create configmap later --from-literal=a=b")?;
    let snapshot = newest(site)?;
    ctx.kk_nodes(site, &["etcd", "restore", "--snapshot", &snapshot])?.expect_code(0)?;
    checks::cluster_is_complete(ctx, site)?;
    ctx.kubectl(site, "get configmap kept")?;
    ensure!(ctx.kubectl(site, "get configmap later").is_err(), "an object from after the snapshot is there");
    ctx.kubectl(site, "delete configmap kept")?;
    checks::create_changes_nothing(ctx, site)?;
    // A restore keeps the data from before it until a person removes it.
    for host in &site.hosts {
        ctx.host(host, "rm -r /var/lib/etcd/member-before-*")?;
    }
    Ok(())
}

/// All members answer, one is the leader, and a defragmentation has lost nothing on any of them.
fn members_are_well(ctx: &Context<'_>, site: &Site) -> Result<()> {
    let job = ctx.kk_job(site, &["etcd", "status", "--output", "json"]);
    let members: serde_json::Value = serde_json::from_str(&ctx.run("kk-etcd-status", job)?.ok()?)?;
    let members = members.as_array().context("no list")?;
    let leaders = members.iter().filter(|one| one["member"]["leader"] == true).count();
    ensure!(members.len() == site.hosts.len() && leaders == 1, "these are the members: {members:?}");
    ctx.kk_nodes(site, &["etcd", "defrag"])?.expect_code(0)?;
    Ok(())
}

/// The newest snapshot on this machine.
fn newest(site: &Site) -> Result<String> {
    let directory = site.workdir().join("lab/backups");
    let files = fs::read_dir(&directory).with_context(|| format!("no {}", directory.display()))?;
    let names: Result<Vec<_>, _> = files.map(|file| file.map(|file| file.path())).collect();
    let newest = names?.into_iter().filter(|path| path.extension().is_some_and(|kind| kind == "db")).max();
    Ok(newest.context("no snapshot on this machine")?.display().to_string())
}
