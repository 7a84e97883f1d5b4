//! The state of a host, in everything that an installer could change: files with contents, modes and owners, users, units, kernel
//! settings, links, addresses, routes, packet filter rules, mounts, control groups, processes.

use std::collections::BTreeMap;
use std::fs;

use anyhow::{Context as _, Result, anyhow, ensure};

use crate::context::Context;
use crate::process::Running;

const SCRIPT: &str = include_str!("host_state.sh");

/// Entries that change by themselves on an idle host: beginning of the entry, and why.
const VOLATILE: &[(&str, &str)] = &[
    ("file /var/cache/", "caches"),
    ("content /var/cache/", "caches"),
    ("file /var/lib/systemd/", "systemd's own clocks, seeds and timers"),
    ("content /var/lib/systemd/", "systemd's own clocks, seeds and timers"),
    ("sysctl kernel.", "the machine's, shared by all hosts of the lab, and read-only in them"),
    ("sysctl vm.", "the machine's, shared by all hosts of the lab, and read-only in them"),
    ("sysctl fs.", "counters of the machine"),
    ("sysctl net.netfilter.nf_conntrack_count", "a counter"),
    ("unit apt-", "a timer may fire at any time"),
    ("unit dpkg-", "a timer may fire at any time"),
    ("unit e2scrub", "a timer may fire at any time"),
    ("unit fstrim", "a timer may fire at any time"),
    ("unit systemd-tmpfiles-clean", "a timer may fire at any time"),
    ("unit systemd-hostnamed", "started by who asks, ends by itself"),
    ("unit user@", "as long as a user is logged in"),
    ("unit user-runtime-dir@", "as long as a user is logged in"),
    ("unit session-", "as long as a user is logged in"),
    ("unit run-user-", "as long as a user is logged in"),
    ("mount /run/user/", "as long as a user is logged in"),
    ("process ", "checked by name below"),
];

/// Kernel settings that matter although their beginning is in the list of volatile entries: `kk` sets them.
const SETTINGS: &[&str] = &["sysctl fs.inotify.max_user_instances", "sysctl fs.inotify.max_user_watches"];

/// Entries that may differ when a cluster was created and deleted again with everything: part of the entry, and why. This is the
/// whole list.
const AFTER_DELETE: &[(&str, &str)] = &[
    ("content /etc/passwd- ", "the backup that useradd and userdel write"),
    ("content /etc/group- ", "the backup that useradd and userdel write"),
    ("content /etc/shadow- ", "the backup that useradd and userdel write"),
    ("content /etc/gshadow- ", "the backup that useradd and userdel write"),
    (
        "unit network-online.target ",
        "a milestone of the boot: reached once, it stays reached until the next boot",
    ),
];

/// Programs that no host runs before a cluster or after it.
const CLUSTER_PROCESSES: &[&str] = &[
    "process etcd",
    "process kube",
    "process containerd",
    "process flanneld",
    "process coredns",
    "process haproxy",
    "process pause",
];

/// Entries by `kind key`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct HostState(pub(crate) BTreeMap<String, String>);

impl HostState {
    fn parse(printed: &str) -> Self {
        let entries = printed.lines().filter_map(|line| line.split_once('\t'));
        Self(
            entries
                .filter(|(key, _)| !is_volatile(key))
                .map(|(key, value)| (key.into(), value.into()))
                .collect(),
        )
    }

    /// The differences to `after`, a line for each entry.
    pub(crate) fn differences(&self, after: &Self) -> Vec<String> {
        let mut lines = Vec::new();
        for (key, value) in &self.0 {
            match after.0.get(key) {
                None => lines.push(format!("gone: {key} {value}")),
                Some(now) if now != value => lines.push(format!("differs: {key} {value} -> {now}")),
                Some(_) => {}
            }
        }
        let new = after.0.iter().filter(|(key, _)| !self.0.contains_key(*key));
        lines.extend(new.map(|(key, value)| format!("new: {key} {value}")));
        lines
    }
}

fn is_volatile(key: &str) -> bool {
    let begins = |list: &[&str]| list.iter().any(|beginning| key.starts_with(beginning));
    VOLATILE.iter().any(|(beginning, _)| key.starts_with(beginning))
        && !begins(SETTINGS)
        && !begins(CLUSTER_PROCESSES)
}

/// Inspects all hosts at once. The results are also stored in the scenario's directory.
pub(crate) fn of_all(ctx: &Context<'_>, hosts: &[String]) -> Result<BTreeMap<String, HostState>> {
    let mut begun: Vec<(&String, Running)> = Vec::new();
    for host in hosts {
        let job = ctx.lab_job(&["exec", host, "--", "sh", "-s"]).stdin(SCRIPT);
        begun.push((host, ctx.start(&format!("state-{host}"), job)?));
    }
    let mut states = BTreeMap::new();
    for (host, running) in begun {
        let printed = running.wait()?.ok().with_context(|| format!("cannot probe {host}"))?;
        let state = HostState::parse(&printed);
        ensure!(state.0.len() > 1000, "the state of {host} has only {} entries", state.0.len());
        states.insert(host.clone(), state);
    }
    Ok(states)
}

/// All differences of all hosts, each line beginning with the host's name.
pub(crate) fn differences(
    before: &BTreeMap<String, HostState>,
    after: &BTreeMap<String, HostState>,
) -> Vec<String> {
    let none = HostState::default();
    let lines = before.iter().flat_map(|(host, state)| {
        let lines = state.differences(after.get(host).unwrap_or(&none));
        lines.into_iter().map(move |line| format!("{host}: {line}"))
    });
    lines.collect()
}

/// Inspects the hosts after a delete with everything. Errors: they are not in their state `before` a create.
pub(crate) fn expect_restored(ctx: &Context<'_>, before: &BTreeMap<String, HostState>) -> Result<()> {
    expect_restored_but(ctx, before, &[])
}

/// The same for hosts where entries with one of these texts may differ, too.
pub(crate) fn expect_restored_but(
    ctx: &Context<'_>,
    before: &BTreeMap<String, HostState>,
    but: &[&str],
) -> Result<()> {
    let hosts: Vec<String> = before.keys().cloned().collect();
    let mut lines = differences(before, &of_all(ctx, &hosts)?);
    let allowed = AFTER_DELETE.iter().map(|(part, _)| part).chain(but);
    lines.retain(|line| !allowed.clone().any(|part| line.contains(part)));
    expect_none(ctx, "the hosts are not as they were before", &lines)
}

/// Errors: there are lines. All are written into a file of the scenario's directory, the first ones into the error.
pub(crate) fn expect_none(ctx: &Context<'_>, what: &str, lines: &[String]) -> Result<()> {
    if lines.is_empty() {
        return Ok(());
    }
    let file = ctx.dir.join("differences.txt");
    fs::write(&file, lines.join("\n"))?;
    let first = lines.iter().take(25).map(String::as_str).collect::<Vec<_>>().join("\n  ");
    Err(anyhow!("{what}: {} differences, all in {}\n  {first}", lines.len(), file.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differences_are_named_and_the_volatile_left_out() {
        let before = HostState::parse(
            "file /a\tf 644 root:root \nfile /b\tf 600\nsysctl kernel.random.uuid\t1\nsysctl fs.inotify.max_user_watches\t1\n",
        );
        let after = HostState::parse(
            "file /a\tf 600 root:root \nfile /c\td\nsysctl kernel.random.uuid\t2\nsysctl fs.inotify.max_user_watches\t2\nprocess etcd\t\nprocess sh\t\n",
        );
        assert_eq!(
            before.differences(&after),
            [
                "differs: file /a f 644 root:root  -> f 600 root:root ",
                "gone: file /b f 600",
                "differs: sysctl fs.inotify.max_user_watches 1 -> 2",
                "new: file /c d",
                "new: process etcd ",
            ]
        );
    }
}
