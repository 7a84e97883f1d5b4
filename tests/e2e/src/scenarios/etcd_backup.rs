//! Backups of etcd, by the timer of the hosts and by hand: each is complete or does not exist. A settings file changes their
//! directory and their number. A backup that is killed or finds the disk full leaves nothing behind and loses no older backup,
//! and the next command reports the failure.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use anyhow::{Context as _, Result, ensure};
use rustix::process::Signal;
use serde_json::json;

use crate::checks;
use crate::cluster;
use crate::context::Context;
use crate::site::Site;

/// The default directory of backups, and the directory of the changed file.
const DIRECTORIES: [&str; 2] = ["/var/backups/kube_etcd", "/var/backups/elsewhere"];
/// The name of a backup contains the second. systemd lets a unit start five times in ten seconds.
const BACK_UP: &str =
    "systemctl reset-failed backup-etcd.service || true; sleep 1.1; systemctl start backup-etcd.service";
/// The changed file keeps so many.
const KEEP: usize = 2;

pub(super) fn run(ctx: &Context<'_>) -> Result<()> {
    let cluster = cluster::ensure(ctx)?;
    let site = &cluster.site;
    for host in &site.hosts {
        ctx.host(host, "systemctl is-active backup-etcd.timer; systemctl start backup-etcd.service")?;
        whole_ones(ctx, host, DIRECTORIES[0])?;
    }
    let other = site.variant("other-backups", |cluster| {
        cluster["spec"]["etcd"]["backupDir"] = json!(DIRECTORIES[1]);
        cluster["spec"]["etcd"]["keepBackupNumber"] = json!(KEEP);
    })?;
    ctx.kk_ok(&other, "create", &[])?;
    let host = other.control_plane();
    let mut newest = String::new();
    for _ in 0..=KEEP {
        ctx.host(host, BACK_UP)?;
        let names = whole_ones(ctx, host, DIRECTORIES[1])?;
        ensure!(names.len() <= KEEP && names.last() > Some(&newest), "these were kept: {names:?}");
        newest.clone_from(names.last().context("no backup")?);
    }
    killed(ctx, host).context("a backup that is killed")?;
    disk_is_full(ctx, &other).context("a full disk")?;
    by_hand(ctx, &other).context("a snapshot by hand")?;

    ctx.kk_ok(site, "create", &[])?;
    for host in &site.hosts {
        // The earlier backups belong to the user, and stay.
        whole_ones(ctx, host, DIRECTORIES[0])?;
        ctx.host(host, &format!("rm -rf {}", DIRECTORIES[1]))?;
    }
    checks::create_changes_nothing(ctx, site)
}

/// Names of the backups in a directory, oldest first. Errors: there is no backup, a backup is incomplete, the directory contains
/// another file, or other users may read a backup.
fn whole_ones(ctx: &Context<'_>, host: &str, directory: &str) -> Result<Vec<String>> {
    let script = format!(
        "cd {directory}
         for file in snapshot-*.db; do
             etcdutl snapshot status $file >/dev/null
             stat -c '%a %n' $file
         done
         find . -type f -not -name 'snapshot-*.db' -not -name .lock -printf 'other %P\\n'"
    );
    let names: Result<Vec<String>> = ctx
        .host(host, &script)?
        .lines()
        .map(|line| {
            let name = line.strip_prefix("600 ");
            name.map(str::to_owned).with_context(|| format!("on {host} in {directory}: {line}"))
        })
        .collect();
    names
}

/// At any moment, every file with the name of a backup is a complete backup; the next run removes leftovers.
fn killed(ctx: &Context<'_>, host: &str) -> Result<()> {
    for pause in ["0.02", "0.1", "0.2", "0.4"] {
        let kill = format!(
            "systemctl reset-failed backup-etcd.service || true
             systemctl start --no-block backup-etcd.service; sleep {pause}
             systemctl kill --signal KILL backup-etcd.service || true
             while systemctl is-active -q backup-etcd.service; do sleep 0.1; done
             for file in {}/snapshot-*.db; do etcdutl snapshot status $file >/dev/null; done",
            DIRECTORIES[1]
        );
        ctx.host(host, &kill)?;
    }
    ctx.host(host, BACK_UP)?;
    let names = whole_ones(ctx, host, DIRECTORIES[1])?;
    ensure!(names.len() <= KEEP, "these were kept: {names:?}");
    Ok(())
}

/// The directory becomes a file system of 64 KiB that holds nothing else.
fn disk_is_full(ctx: &Context<'_>, site: &Site) -> Result<()> {
    let (host, directory) = (site.control_plane(), DIRECTORIES[1]);
    let before = whole_ones(ctx, host, directory)?;
    ctx.host(host, &format!("mount -t tmpfs -o size=64k tmpfs {directory}"))?;
    let full = ctx.try_host(host, "systemctl start backup-etcd.service")?;
    ensure!(full.code != Some(0), "a backup fitted into 64 KiB");
    let left = ctx.host(host, &format!("find {directory} -type f -not -name .lock"))?;
    ensure!(left.is_empty(), "it has left {left}");
    let snapshot = ctx.kk_nodes(site, &["etcd", "snapshot"])?;
    snapshot.expect_code(1)?.expect_said(&["No space left on device", host])?;
    let warnings = ctx.kk_ok(site, "create", &[])?.events.found("warning");
    let says = |line: &String| line.contains("the last backup of etcd failed");
    ensure!(warnings.iter().any(says), "kk did not warn of it: {warnings:?}");
    ctx.host(host, &format!("umount {directory}"))?;
    ensure!(whole_ones(ctx, host, directory)? == before, "older backups are gone");
    ctx.host(host, BACK_UP)?;
    Ok(())
}

/// `kk etcd snapshot` after a run that was killed, and after an interrupted fetch: the next snapshot is complete, and the
/// directory contains nothing else.
fn by_hand(ctx: &Context<'_>, site: &Site) -> Result<()> {
    let words = ["etcd", "snapshot", "-y", "--output", "json"];
    let mut killed = ctx.start("kk-killed", ctx.kk_job(site, &words))?;
    ctx.await_task(&mut killed, "etcd-backup/take_snapshot")?;
    // It is short: it may have ended.
    let _ = killed.signal(Signal::KILL);
    killed.wait()?;
    let directory = site.workdir().join("lab/backups");
    fs::create_dir_all(&directory)?;
    // The fetch is too short here to be interrupted by a signal.
    fs::write(directory.join(".new.db"), "half of another one")?;
    ctx.kk_nodes(site, &["etcd", "snapshot"])?.expect_code(0)?;
    let files = fs::read_dir(&directory).with_context(|| format!("no {}", directory.display()))?;
    for file in files {
        let path = file?.path();
        let mode = fs::metadata(&path)?.permissions().mode() & 0o777;
        ensure!(path.extension().is_some_and(|kind| kind == "db"), "{} is left", path.display());
        ensure!(mode == 0o600, "{} has the mode {mode:o}", path.display());
        let verify = "cat >/run/fetched.db; etcdutl snapshot status /run/fetched.db; rm /run/fetched.db";
        ctx.run("verify", ctx.on_host(site.control_plane(), verify).stdin_file(&path))?.ok()?;
    }
    Ok(())
}
