//! `kk-lab down` leaves nothing of the lab behind: after a normal end, after a crash in the middle of `up`, and when
//! the state folder is lost.

use std::collections::BTreeSet;
use std::fs;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use rustix::process::Signal;

use crate::context::Context;
use crate::process::Job;

const STATE: &str = "/var/lib/kk-lab";
const INOTIFY: &str = "/proc/sys/fs/inotify/max_user_instances";
/// How far into `up` it is killed: while hosts are mounted, and while they boot.
const CRASHES_MS: [u64; 3] = [150, 600, 1500];

pub(super) fn run(ctx: &Context<'_>) -> Result<()> {
    ctx.shared.replace(None);
    down(ctx)?;
    let before = traces(ctx)?;
    ensure!(before.is_empty(), "without a lab there are: {before:?}");
    let inotify = fs::read_to_string(INOTIFY)?;
    let ends_clean = |how: &str| -> Result<()> {
        down(ctx).with_context(|| how.to_owned())?;
        let left = traces(ctx)?;
        ensure!(left.is_empty(), "{how}, down leaves: {left:?}");
        let now = fs::read_to_string(INOTIFY)?;
        ensure!(now == inotify, "{how}, {INOTIFY} is {} and was {}", now.trim(), inotify.trim());
        ctx.run("lab-down-again", ctx.lab_job(&["down"]))?.ok().context("a second down")?;
        Ok(())
    };

    ctx.lab_up(2, &ctx.dir.join("cluster.yaml"), None)?;
    ensure!(ctx.lab_hosts()?.len() == 2, "two hosts should run");
    ensure!(!traces(ctx)?.is_empty(), "a running lab has no traces: this test looks at the wrong places");
    ends_clean("after a normal up")?;

    for after in CRASHES_MS {
        let file = ctx.dir.join("cluster.yaml");
        let up = ctx.start(
            "lab-up-killed",
            ctx.lab_job(&["up", "--fresh", "--hosts", "2", "--config"]).args([file]),
        )?;
        std::thread::sleep(Duration::from_millis(after));
        up.signal(Signal::KILL)?;
        up.wait()?;
        ends_clean(&format!("after a kill {after} ms into up"))?;
    }

    ctx.lab_up(2, &ctx.dir.join("cluster.yaml"), None)?;
    // A command that is still inside, and no record of anything: only the kernel knows what is the lab's.
    let inside = ctx.start("inside", ctx.enter(&["sleep", "600"]))?;
    let records =
        fs::read_dir(STATE)?.flatten().filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_file()));
    for record in records {
        fs::remove_file(record.path())?;
    }
    ends_clean("after all records were lost")?;
    ensure!(inside.wait()?.code.is_none(), "a command inside the lab outlived it");
    Ok(())
}

fn down(ctx: &Context<'_>) -> Result<()> {
    ctx.run("lab-down", ctx.lab_job(&["down"]))?.ok()?;
    Ok(())
}

/// Everything on this machine that can only be the lab's.
fn traces(ctx: &Context<'_>) -> Result<BTreeSet<String>> {
    let mut found = BTreeSet::new();
    let mounts = fs::read_to_string("/proc/self/mountinfo")?;
    let points = mounts.lines().filter_map(|line| line.split(' ').nth(4));
    found.extend(
        points
            .filter(|point| point.contains("kk-lab") || point.ends_with("netns/lab"))
            .map(|point| format!("mount {point}")),
    );
    for entry in fs::read_dir("/proc")?.flatten() {
        let group = fs::read_to_string(entry.path().join("cgroup")).unwrap_or_default();
        if group.lines().any(|line| line.contains("/lab-")) {
            let name = fs::read_to_string(entry.path().join("comm")).unwrap_or_default();
            found.insert(format!("process {} {}", entry.file_name().display(), name.trim()));
        }
    }
    let groups = Job::new("find").args(["/sys/fs/cgroup", "-maxdepth", "2", "-type", "d", "-name", "lab-*"]);
    let links = Job::new("ip").args(["-o", "link"]);
    for (kind, job) in [("cgroup", groups), ("link", links)] {
        let printed = ctx.run("traces", job)?.ok()?;
        let ours = printed.lines().filter(|line| kind == "cgroup" || line.contains(": vb-node"));
        found.extend(ours.map(|line| format!("{kind} {line}")));
    }
    for path in [STATE, "/run/netns/lab", "/var/run/netns/lab"] {
        if fs::symlink_metadata(path).is_ok() {
            found.insert(format!("path {path}"));
        }
    }
    Ok(found)
}
