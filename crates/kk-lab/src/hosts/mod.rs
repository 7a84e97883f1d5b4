//! One throw-away host: a systemd-nspawn container with its own root (an overlay above the shared one), its own
//! network device, and real folders where an overlay cannot lie on an overlay.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use serde::Serialize;

use crate::furnish::{SudoUser, furnish};
use crate::run::{command, last_lines, output, succeeds};
use crate::{background, cgroup, lab, mounts, net, paths};

/// From a started container to an answer over SSH; measured 3 to 4 s for three at once on two cores.
const BOOT_PATIENCE: Duration = Duration::from_secs(90);
/// System calls that container runtimes inside the host need; nspawn refuses them by default.
const SYSTEM_CALLS: &str =
    "@keyring @privileged @mount @module @raw-io @reboot @swap @debug bpf perf_event_open";
/// Folders that containers lie in: real ones of this machine.
const DATA: [&str; 3] = ["containerd", "kubelet", "etcd"];
/// The last number of node1's address.
const FIRST_ADDRESS: u8 = 11;
/// More would not fit into a machine anyway, and the addresses stay below the ones for virtual addresses.
pub(crate) const MOST_HOSTS: u8 = 40;

/// A host of the lab; its address follows from its name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub(crate) struct Host {
    pub(crate) name: String,
    pub(crate) address: String,
}

impl Host {
    /// `number` counts from 1.
    pub(crate) fn new(number: u8) -> Self {
        Self { name: format!("node{number}"), address: format!("172.30.0.{}", FIRST_ADDRESS + number - 1) }
    }

    /// The host called `name`. Errors: names are `node1` to `node40`.
    pub(crate) fn named(name: &str) -> Result<Self> {
        let number = name.strip_prefix("node").and_then(|digits| digits.parse().ok());
        match number {
            Some(number) if (1..=MOST_HOSTS).contains(&number) => Ok(Self::new(number)),
            _ => bail!("no host can be called `{name}`; hosts of the lab are node1 to node{MOST_HOSTS}"),
        }
    }

    /// Hosts that have a folder or a control group, whether they run or not.
    pub(crate) fn known() -> Result<Vec<Self>> {
        let mut names = cgroup::names()?;
        if let Ok(entries) = fs::read_dir(paths::state("hosts")) {
            names.extend(entries.flatten().filter_map(|entry| entry.file_name().into_string().ok()));
        }
        let mut hosts: Vec<Self> = names.iter().filter_map(|name| Self::named(name).ok()).collect();
        hosts.sort_by_key(|host| (host.name.len(), host.name.clone()));
        Ok(hosts)
    }

    fn folder(&self) -> PathBuf {
        paths::state("hosts").join(&self.name)
    }

    /// Process id (as this machine sees it) of the host's systemd, when it runs.
    pub(crate) fn leader(&self) -> Result<Option<i32>> {
        for id in cgroup::processes(&self.name)? {
            let status = fs::read_to_string(format!("/proc/{id}/status")).unwrap_or_default();
            let inner = status.lines().find_map(|line| line.strip_prefix("NSpid:"));
            // Two ids, the inner one being 1: the first process of a namespace below ours. Pods nest one deeper.
            if inner.is_some_and(|ids| ids.split_whitespace().skip(1).eq(["1"])) {
                return Ok(Some(id));
            }
        }
        Ok(None)
    }

    /// Boots the host anew, from nothing but the root file system `base`, and waits until it answers over SSH.
    pub(crate) fn boot(&self, base: &Path, user: Option<&SudoUser>) -> Result<()> {
        self.remove()?;
        let root = self.mount_root(base)?;
        furnish(self, &root, user).with_context(|| format!("cannot prepare {}", self.name))?;
        let log = self.folder().join("boot.log");
        let mut child = background::start(&self.name, &self.container(&root), &log)?;
        if let Err(error) = self.wait(|| Ok(child.try_wait()?.is_none())) {
            cgroup::remove(&self.name)?;
            let said = fs::read_to_string(&log).unwrap_or_default();
            return Err(error.context(format!(
                "last words of {} ({}):\n{}",
                self.name,
                log.display(),
                last_lines(&said)
            )));
        }
        Ok(())
    }

    /// Waits until a host that runs answers; one may still be booting when its `up` was killed.
    pub(crate) fn wait_for_answer(&self) -> Result<()> {
        self.wait(|| Ok(self.leader()?.is_some())).with_context(|| {
            format!(
                "{} is of no use any more\nhint: `kk-lab up --host {}` makes it new",
                self.name, self.name
            )
        })
    }

    fn wait(&self, mut runs: impl FnMut() -> Result<bool>) -> Result<()> {
        let begun = Instant::now();
        while !self.answers() {
            ensure!(runs()?, "{} ended while booting", self.name);
            ensure!(begun.elapsed() < BOOT_PATIENCE, "{} does not answer over SSH", self.name);
            sleep(Duration::from_millis(100));
        }
        Ok(())
    }

    fn mount_root(&self, base: &Path) -> Result<PathBuf> {
        let folder = self.folder();
        for name in ["upper", "work", "root"].iter().chain(&DATA) {
            fs::create_dir_all(folder.join(name))?;
        }
        // Whatever the caller's umask: the upper folder becomes `/` of the host. The others are as their owners make
        // them where they are no mount points.
        for (name, mode) in [("upper", 0o755), ("containerd", 0o700), ("kubelet", 0o755), ("etcd", 0o755)] {
            fs::set_permissions(folder.join(name), fs::Permissions::from_mode(mode))?;
        }
        let root = folder.join("root");
        let layers = format!(
            "lowerdir={},upperdir={},workdir={}",
            base.display(),
            folder.join("upper").display(),
            folder.join("work").display()
        );
        output(command("mount", ["-t", "overlay", "overlay", "-o", &layers]).arg(&root))?;
        Ok(root)
    }

    fn container(&self, root: &Path) -> Command {
        let mut words = vec![
            "--quiet".to_owned(),
            "--boot".into(),
            format!("--machine={}", self.name),
            format!("--directory={}", root.display()),
            format!("--network-bridge={}", net::BRIDGE),
            "--resolv-conf=off".into(),
            "--link-journal=no".into(),
            // No systemd of this machine is asked for anything: it may not run here at all.
            "--keep-unit".into(),
            "--register=no".into(),
            "--private-users=no".into(),
            "--capability=all".into(),
            // The clock is the machine's.
            "--drop-capability=CAP_SYS_TIME".into(),
            format!("--system-call-filter={SYSTEM_CALLS}"),
            "--bind=/dev/kmsg".into(),
        ];
        words.extend(
            DATA.iter().map(|name| format!("--bind={}:/var/lib/{name}", self.folder().join(name).display())),
        );
        let mut command = net::inside("systemd-nspawn", words);
        command.env("SYSTEMD_NSPAWN_API_VFS_WRITABLE", "1");
        command
    }

    /// Logged in over SSH and open for every user (a booting systemd lets only root in).
    fn answers(&self) -> bool {
        let target = format!("root@{}", self.address);
        let options =
            ["ConnectTimeout=2", "StrictHostKeyChecking=no", "UserKnownHostsFile=/dev/null", "BatchMode=yes"];
        let mut words: Vec<String> =
            options.iter().flat_map(|option| ["-o".to_owned(), (*option).to_owned()]).collect();
        words.extend(["-i".to_owned(), paths::state("id_ed25519").display().to_string(), target]);
        words.push("test ! -e /run/nologin".to_owned());
        // ssh itself waits for ever for a server that has accepted it and hangs.
        succeeds(&mut net::inside("timeout", ["10".to_owned(), "ssh".to_owned()].into_iter().chain(words)))
    }

    /// A command that runs inside the host, as root, without SSH (so it works when a test has broken that).
    pub(crate) fn inside(&self, words: &[String]) -> Result<Command> {
        lab::need_root()?;
        let Some(leader) = self.leader()? else {
            bail!(
                "{} does not run\nhint: `kk-lab status` lists the hosts, `kk-lab up --host {}` boots it",
                self.name,
                self.name
            );
        };
        ensure!(!words.is_empty(), "no command was given");
        let mut enter =
            command("nsenter", ["--mount", "--uts", "--ipc", "--net", "--pid", "--cgroup", "--root", "--wd"]);
        enter.arg(format!("--target={leader}")).arg("--").args(words);
        // A group of its own: in v2 a group that hands controllers down may hold no process itself.
        let mut inside = background::in_group(&format!("{}/exec", self.name), &enter, false)?;
        inside
            .env("HOME", "/root")
            .env("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin");
        Ok(inside)
    }

    /// Ends the host as a power cut would and removes all that was its own.
    pub(crate) fn remove(&self) -> Result<()> {
        cgroup::remove(&self.name)?;
        // The kernel keeps the namespace, and this link with it, while connections of dead programs linger.
        succeeds(&mut command("ip", ["-n", net::NAMESPACE, "link", "delete", &format!("vb-{}", self.name)]));
        // nspawn tidies this up itself only when it ends by itself.
        let _ = fs::remove_dir(Path::new("/run/systemd/nspawn/propagate").join(&self.name));
        mounts::remove_folder(&self.folder())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_address_follows_from_the_name() {
        let host = Host::named("node3").unwrap();
        assert_eq!((host.name.as_str(), host.address.as_str()), ("node3", "172.30.0.13"));
        assert_eq!(host, Host::new(3));
    }

    #[test]
    fn other_names_are_refused() {
        for name in ["node0", "node41", "node", "mirror", "node1x", "../node1", "node999"] {
            assert!(Host::named(name).is_err(), "{name}");
        }
    }
}
