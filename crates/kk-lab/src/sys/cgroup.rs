//! Control groups mark what belongs to a lab: each host and each server has the group `kk-lab-NAME` in every
//! controller. They outlive crashes and lost records, so `down` finds every process of the lab by them.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use rustix::process::{Pid, Signal, kill_process};

use crate::sys::instance;

/// The kernel needs a moment to remove killed processes from their group.
const PATIENCE: Duration = Duration::from_secs(30);

/// Directory of the group `NAME`, or of `NAME/PART` below it, in each hierarchy.
fn group(name: &str) -> String {
    format!("{}-{name}", instance::label())
}

/// Mount points of all hierarchies: every v1 controller, systemd's own named one, and the one of v2.
fn roots() -> Result<Vec<PathBuf>> {
    let table = fs::read_to_string("/proc/self/mountinfo")?;
    let mut roots = Vec::new();
    for line in table.lines() {
        let Some((left, right)) = line.split_once(" - ") else { continue };
        if let (Some(point), Some("cgroup" | "cgroup2")) = (left.split(' ').nth(4), right.split(' ').next()) {
            roots.push(PathBuf::from(point));
        }
    }
    if roots.is_empty() {
        bail!("no cgroup hierarchy is mounted under /sys/fs/cgroup");
    }
    Ok(roots)
}

/// Creates the group (`NAME`, or `NAME/PART` below it) in every hierarchy; a process that writes its id into all
/// returned files is a member.
pub(crate) fn create(name: &str) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for root in roots()? {
        let dir = root.join(group(name));
        fs::create_dir_all(&dir)
            .with_context(|| format!("cannot create the control group {}", dir.display()))?;
        // A v1 cpuset is born empty and takes no process until it has processors and memory nodes.
        for file in ["cpuset.cpus", "cpuset.mems"] {
            if let (Ok(all), true) = (fs::read_to_string(root.join(file)), root.ends_with("cpuset")) {
                fs::write(dir.join(file), all)?;
            }
        }
        // In v2 a group has only the controllers that the one above it hands down.
        for controller in
            fs::read_to_string(root.join("cgroup.controllers")).unwrap_or_default().split_whitespace()
        {
            let _ = fs::write(root.join("cgroup.subtree_control"), format!("+{controller}"));
        }
        files.push(dir.join("cgroup.procs"));
    }
    Ok(files)
}

/// Length of the period in which a limited group gets its share.
const PERIOD_US: u32 = 100_000;

/// Lets the group use this many processors, in parts of one.
pub(crate) fn limit_cpus(name: &str, cpus: f64) -> Result<()> {
    create(name)?;
    let quota = format!("{:.0}", cpus * f64::from(PERIOD_US));
    for root in roots()? {
        let directory = root.join(group(name));
        for (file, value) in
            [("cpu.cfs_quota_us", quota.clone()), ("cpu.max", format!("{quota} {PERIOD_US}"))]
        {
            if directory.join(file).exists() {
                return fs::write(directory.join(file), value)
                    .with_context(|| format!("cannot limit {}", directory.display()));
            }
        }
    }
    bail!("the kernel cannot limit processor time: no control group has the controller `cpu`")
}

/// Names of all groups of the lab that exist in any hierarchy, without the prefix.
pub(crate) fn names() -> Result<BTreeSet<String>> {
    let (mut names, prefix) = (BTreeSet::new(), group(""));
    for root in roots()? {
        for entry in fs::read_dir(root)?.flatten() {
            let file_name = entry.file_name();
            let name = file_name.to_str().and_then(|name| name.strip_prefix(prefix.as_str()));
            names.extend(name.filter(|_| entry.path().is_dir()).map(str::to_owned));
        }
    }
    Ok(names)
}

/// Ids of all processes in the group and below it.
pub(crate) fn processes(name: &str) -> Result<BTreeSet<i32>> {
    let mut found = BTreeSet::new();
    for root in roots()? {
        collect(&root.join(group(name)), &mut found);
    }
    Ok(found)
}

fn collect(dir: &Path, found: &mut BTreeSet<i32>) {
    let members = fs::read_to_string(dir.join("cgroup.procs")).unwrap_or_default();
    found.extend(members.lines().filter_map(|line| line.parse::<i32>().ok()));
    for child in subdirectories(dir) {
        collect(&child, found);
    }
}

fn subdirectories(dir: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(dir) else { return Vec::new() };
    entries.flatten().map(|entry| entry.path()).filter(|path| path.is_dir()).collect()
}

/// Ends every process of the group and removes it. If the caller itself is a member, it is moved out instead of being ended.
pub(crate) fn remove(name: &str) -> Result<()> {
    let begun = Instant::now();
    let spared = self_and_ancestors();
    loop {
        let members = processes(name)?;
        for id in members.difference(&spared) {
            if let Some(pid) = Pid::from_raw(*id) {
                // It may have ended by itself since it was listed.
                let _ = kill_process(pid, Signal::KILL);
            }
        }
        for root in roots()? {
            for id in members.intersection(&spared) {
                let _ = fs::write(root.join("cgroup.procs"), id.to_string());
            }
            remove_tree(&root.join(group(name)));
        }
        if !names()?.contains(name) {
            return Ok(());
        }
        if begun.elapsed() > PATIENCE {
            bail!(
                "the control group {} cannot be removed; its processes: {:?}",
                group(name),
                processes(name)?
            );
        }
        sleep(Duration::from_millis(20));
    }
}

/// Removes what can be removed now; a group with members stays, and the caller tries again.
fn remove_tree(dir: &Path) {
    for child in subdirectories(dir) {
        remove_tree(&child);
    }
    let _ = fs::remove_dir(dir);
}

fn self_and_ancestors() -> BTreeSet<i32> {
    let mut ids = BTreeSet::new();
    let mut id = i32::try_from(std::process::id()).unwrap_or_default();
    while id > 0 && ids.insert(id) {
        id = parent(id).unwrap_or_default();
    }
    ids
}

/// Parent of a process by `/proc/ID/stat`: the name in parentheses may contain anything, so read from its end.
fn parent(id: i32) -> Option<i32> {
    let stat = fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
    stat.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_own_process_and_its_parent_are_spared() {
        let ids = self_and_ancestors();
        assert!(ids.contains(&i32::try_from(std::process::id()).unwrap()));
        assert!(ids.contains(&parent(i32::try_from(std::process::id()).unwrap()).unwrap()));
    }
}
