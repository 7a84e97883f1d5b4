//! A host as a systemd-nspawn container: its own root (an overlay above the shared tree), its own network device, and
//! real directories where an overlay cannot lie on an overlay.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use anyhow::Result;

use crate::hosts::furnish::{self, SudoUser};
use crate::hosts::settings::Settings;
use crate::hosts::{Host, network};
use crate::sys::run::{command, output};
use crate::sys::{background, cgroup, instance, mounts, net};

/// System calls that container runtimes inside the host need; nspawn refuses them by default.
const SYSTEM_CALLS: &str =
    "@keyring @privileged @mount @module @raw-io @reboot @swap @debug bpf perf_event_open";
/// Data directories of components on the host: real directories of this machine.
const DATA: [&str; 3] = ["containerd", "kubelet", "etcd"];

/// Process id (as this machine sees it) of the host's systemd, when it runs.
pub(super) fn leader(host: &Host) -> Result<Option<i32>> {
    for id in cgroup::processes(&host.name)? {
        let status = fs::read_to_string(format!("/proc/{id}/status")).unwrap_or_default();
        let inner = status.lines().find_map(|line| line.strip_prefix("NSpid:"));
        // Two ids, the inner one being 1: the first process of a namespace below ours. Pods nest one deeper.
        if inner.is_some_and(|ids| ids.split_whitespace().skip(1).eq(["1"])) {
            return Ok(Some(id));
        }
    }
    Ok(None)
}

/// Makes the root file system of the host above `tree`.
pub(super) fn prepare(host: &Host, settings: &Settings, tree: &Path, user: Option<&SudoUser>) -> Result<()> {
    let directory = host.directory();
    for name in ["upper", "work", "root"].iter().chain(&DATA) {
        fs::create_dir_all(directory.join(name))?;
    }
    // Independent of the caller's umask: the upper directory becomes `/` of the host. The other directories get the modes that
    // their components would set if the directories were no mount points.
    for (name, mode) in [("upper", 0o755), ("containerd", 0o700), ("kubelet", 0o755), ("etcd", 0o755)] {
        fs::set_permissions(directory.join(name), fs::Permissions::from_mode(mode))?;
    }
    mount_root(host, tree)?;
    furnish::container(host, settings, &directory.join("root"), user)
}

/// Nothing is done where it is mounted.
fn mount_root(host: &Host, tree: &Path) -> Result<()> {
    let directory = host.directory();
    let root = directory.join("root");
    if mounts::under(&root)?.contains(&root) {
        return Ok(());
    }
    let layers = format!(
        "lowerdir={},upperdir={},workdir={}",
        tree.display(),
        directory.join("upper").display(),
        directory.join("work").display()
    );
    output(command("mount", ["-t", "overlay", "overlay", "-o", &layers]).arg(&root))?;
    Ok(())
}

/// The command that starts the host.
pub(super) fn command_line(host: &Host, settings: &Settings, tree: &Path) -> Result<Command> {
    mount_root(host, tree)?;
    let mut words = vec![
        "--quiet".to_owned(),
        "--boot".into(),
        format!("--machine={}", instance::machine(&host.name)),
        format!("--hostname={}", host.name),
        format!("--directory={}", host.directory().join("root").display()),
        format!("--network-bridge={}", network::bridge(host, settings)),
        "--resolv-conf=off".into(),
        "--link-journal=no".into(),
        // This machine may not run systemd at all, so no request is sent to it.
        "--keep-unit".into(),
        "--register=no".into(),
        "--private-users=no".into(),
        "--capability=all".into(),
        // The clock is the machine's.
        "--drop-capability=CAP_SYS_TIME".into(),
        format!("--system-call-filter={SYSTEM_CALLS}"),
        "--bind=/dev/kmsg".into(),
    ];
    if settings.second_network {
        words.push(format!(
            "--network-veth-extra={}:{}",
            network::second_plug(host),
            network::second_card(host)
        ));
    }
    let data = |name: &&str| format!("--bind={}:/var/lib/{name}", host.directory().join(name).display());
    words.extend(DATA.iter().map(data));
    let mut command = net::inside("systemd-nspawn", words);
    command.env("SYSTEMD_NSPAWN_API_VFS_WRITABLE", "1");
    Ok(command)
}

/// A command in the namespaces of the host's first process.
pub(super) fn inside(host: &Host, leader: i32, words: &[String]) -> Result<Command> {
    let mut enter =
        command("nsenter", ["--mount", "--uts", "--ipc", "--net", "--pid", "--cgroup", "--root", "--wd"]);
    enter.arg(format!("--target={leader}")).arg("--").args(words);
    // A separate group: in v2, a group that delegates controllers to subgroups must not contain processes itself.
    let mut inside = background::in_group(&format!("{}/exec", host.name), &enter, false)?;
    inside.env("HOME", "/root").env("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin");
    Ok(inside)
}
