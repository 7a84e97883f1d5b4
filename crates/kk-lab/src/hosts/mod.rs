//! The hosts of the lab: containers that share this machine's kernel, and virtual machines with their own.
//!
//! The directory of a host contains its settings and its disk, which survive a power cut. Its control group shows whether it
//! runs.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use serde::Serialize;

use crate::hosts::furnish::SudoUser;
use crate::hosts::settings::{Base, Settings};
use crate::sys::run::{last_lines, succeeds};
use crate::sys::{background, cgroup, instance, mounts, net, paths};

pub(crate) mod cluster_file;
mod container;
pub(crate) mod furnish;
pub(crate) mod network;
pub(crate) mod settings;
mod virtual_machine;

/// The last number of node1's address.
const FIRST_ADDRESS: u8 = 11;
/// More would not fit into a machine anyway, and the addresses stay below the virtual addresses.
pub(crate) const MOST_HOSTS: u8 = 40;

/// A host of the lab; its addresses follow from its name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub(crate) struct Host {
    pub(crate) name: String,
    pub(crate) address: String,
    #[serde(skip)]
    number: u8,
}

impl Host {
    /// `number` counts from 1.
    pub(crate) fn new(number: u8) -> Self {
        let address = format!("172.30.0.{}", FIRST_ADDRESS + number - 1);
        Self { name: format!("node{number}"), address, number }
    }

    /// The host called `name`. Errors: names are `node1` to `node40`.
    pub(crate) fn named(name: &str) -> Result<Self> {
        let number = name.strip_prefix("node").and_then(|digits| digits.parse().ok());
        match number {
            Some(number) if (1..=MOST_HOSTS).contains(&number) => Ok(Self::new(number)),
            _ => bail!("no host can be called `{name}`; hosts of the lab are node1 to node{MOST_HOSTS}"),
        }
    }

    /// Hosts that have a directory or a control group, whether they run or not.
    pub(crate) fn known() -> Result<Vec<Self>> {
        let mut names = cgroup::names()?;
        if let Ok(entries) = fs::read_dir(paths::state("hosts")) {
            names.extend(entries.flatten().filter_map(|entry| entry.file_name().into_string().ok()));
        }
        let mut hosts: Vec<Self> = names.iter().filter_map(|name| Self::named(name).ok()).collect();
        hosts.sort_by_key(|host| host.number);
        Ok(hosts)
    }

    fn directory(&self) -> PathBuf {
        paths::state("hosts").join(&self.name)
    }

    /// Address in the second network.
    fn second_address(&self) -> String {
        format!("10.99.0.{}", FIRST_ADDRESS + self.number - 1)
    }

    /// Whether it is switched on; it may still be booting.
    pub(crate) fn runs(&self) -> Result<bool> {
        match Settings::load(&self.directory()) {
            Ok(Settings { base: Base::Disk { .. }, .. }) => Ok(virtual_machine::process(self)?.is_some()),
            _ => Ok(container::leader(self)?.is_some()),
        }
    }

    /// Boots a fresh host with only the files of its base, and waits until it answers over SSH.
    pub(crate) fn boot(&self, settings: &Settings, user: Option<&SudoUser>) -> Result<()> {
        self.remove()?;
        fs::create_dir_all(self.directory())?;
        settings.save(&self.directory())?;
        let prepared = match &settings.base {
            Base::Tree(tree) => container::prepare(self, settings, tree, user),
            Base::Disk { disk, .. } => virtual_machine::prepare(self, settings, disk),
        };
        prepared.with_context(|| format!("cannot prepare {}", self.name))?;
        self.start(settings)
    }

    /// Switches on a host that was switched off; its disk is as it was.
    pub(crate) fn power_on(&self) -> Result<()> {
        if self.runs()? {
            return self.wait_for_answer();
        }
        self.start(&Settings::load(&self.directory())?)
    }

    fn start(&self, settings: &Settings) -> Result<()> {
        network::plug(self, settings)?;
        let wanted = match &settings.base {
            Base::Tree(tree) => container::command_line(self, settings, tree)?,
            Base::Disk { kernel, initrd, .. } => {
                virtual_machine::command_line(self, settings, kernel, initrd)
            }
        };
        if let Some(cpus) = settings.cpus {
            cgroup::limit_cpus(&self.name, cpus)?;
        }
        let log = self.directory().join("boot.log");
        let mut child = background::start(&self.name, &wanted, &log)?;
        let plugged = network::plug_second(self, settings, &mut child);
        if let Err(error) = plugged.and_then(|()| self.wait_until_booted(settings, &mut child)) {
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

    fn wait_until_booted(&self, settings: &Settings, child: &mut Child) -> Result<()> {
        self.wait(settings.boot_patience(), || Ok(child.try_wait()?.is_none()))
    }

    /// Waits until a host that runs answers; one may still be booting when its `up` was killed.
    pub(crate) fn wait_for_answer(&self) -> Result<()> {
        let patience =
            Settings::load(&self.directory()).map_or(Duration::from_secs(90), |it| it.boot_patience());
        self.wait(patience, || self.runs()).with_context(|| {
            format!(
                "{} is of no use any more\nhint: `kk-lab up --host {}` makes it new",
                self.name, self.name
            )
        })
    }

    fn wait(&self, patience: Duration, mut runs: impl FnMut() -> Result<bool>) -> Result<()> {
        let begun = Instant::now();
        while !self.answers() {
            ensure!(runs()?, "{} ended while booting", self.name);
            ensure!(begun.elapsed() < patience, "{} does not answer over SSH", self.name);
            sleep(Duration::from_millis(100));
        }
        Ok(())
    }

    /// Logged in over SSH and open for every user (a booting systemd lets only root in).
    fn answers(&self) -> bool {
        // ssh itself waits for ever if a server accepts the connection and then hangs.
        let limit = ["10".to_owned(), "ssh".to_owned()].into_iter();
        succeeds(&mut net::inside("timeout", limit.chain(self.ssh_words("test ! -e /run/nologin", 5))))
    }

    /// Arguments of `ssh` that run this shell text as root.
    fn ssh_words(&self, text: &str, connect_seconds: u8) -> Vec<String> {
        let connect = format!("ConnectTimeout={connect_seconds}");
        let options = [&connect, "StrictHostKeyChecking=no", "UserKnownHostsFile=/dev/null", "BatchMode=yes"];
        let mut words = vec!["-q".to_owned()];
        words.extend(options.iter().flat_map(|option| ["-o".to_owned(), (*option).to_owned()]));
        words.extend(["-i".to_owned(), paths::state("id_ed25519").display().to_string()]);
        words.extend([format!("root@{}", self.address), text.to_owned()]);
        words
    }

    /// A command that runs on the host as root; in a container without SSH, so that it works when a test has broken
    /// that.
    pub(crate) fn inside(&self, words: &[String]) -> Result<Command> {
        crate::sys::need_root()?;
        ensure!(!words.is_empty(), "no command was given");
        ensure!(
            self.runs()?,
            "{} does not run\nhint: `kk-lab status` lists the hosts, `kk-lab up --host {}` boots it",
            self.name,
            self.name
        );
        match container::leader(self)? {
            Some(leader) => container::inside(self, leader, words),
            None => Ok(net::inside("ssh", self.ssh_words(&shell_text(words), 30))),
        }
    }

    /// Ends the host as a power cut would; its disk stays.
    pub(crate) fn power_off(&self) -> Result<()> {
        cgroup::remove(&self.name)?;
        network::unplug(self)?;
        // nspawn tidies this up itself only when it ends by itself.
        let _ =
            fs::remove_dir(Path::new("/run/systemd/nspawn/propagate").join(instance::machine(&self.name)));
        Ok(())
    }

    /// Ends the host as a power cut would and removes all that was its own.
    pub(crate) fn remove(&self) -> Result<()> {
        self.power_off()?;
        mounts::remove_directory(&self.directory())
    }
}

/// Words as a POSIX shell reads them back.
fn shell_text(words: &[String]) -> String {
    let quoted = words.iter().map(|word| format!("'{}'", word.replace('\'', r"'\''")));
    quoted.collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_address_follows_from_the_name() {
        let host = Host::named("node3").unwrap();
        assert_eq!((host.name.as_str(), host.address.as_str()), ("node3", "172.30.0.13"));
        assert_eq!(host.second_address(), "10.99.0.13");
        assert_eq!(host, Host::new(3));
    }

    #[test]
    fn other_names_are_refused() {
        for name in ["node0", "node41", "node", "mirror", "node1x", "../node1", "node999"] {
            assert!(Host::named(name).is_err(), "{name}");
        }
    }

    #[test]
    fn a_shell_reads_words_back() {
        let words = ["printf", "%s|", "a b", "it's", "$HOME", ""].map(str::to_owned);
        let said = crate::sys::run::output(&mut crate::sys::run::command("sh", ["-c", &shell_text(&words)]))
            .unwrap();
        assert_eq!(said, "a b|it's|$HOME||");
    }
}
