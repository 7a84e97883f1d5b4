//! The lab: hosts that `kk-lab` boots, inspects and breaks.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, Result};

use crate::context::Context;
use crate::process::{Finished, Job, Running};

/// The mirror exists; a second Kubernetes version may have to be built.
const UP_LIMIT: Duration = Duration::from_mins(15);

/// An emulated machine boots for half a minute and more.
const POWER_LIMIT: Duration = Duration::from_mins(8);

/// One of the labs of this machine, as `kk-lab --lab NUMBER` names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Lab {
    pub(crate) number: u8,
}

impl Lab {
    pub(crate) const FIRST: Self = Self { number: 1 };

    /// Name of its state directory and prefix of its control groups (`sys/instance.rs` of kk-lab).
    fn label(self) -> String {
        if self == Self::FIRST { "kk-lab".to_owned() } else { format!("kk-lab{}", self.number) }
    }

    /// A path in its state directory.
    pub(crate) fn state(self, name: &str) -> PathBuf {
        Path::new("/var/lib").join(self.label()).join(name)
    }

    /// Prefix of the names of its control groups.
    pub(crate) fn control_groups(self) -> String {
        format!("{}-", self.label())
    }
}

/// A user of the hosts who is not root and needs a password for sudo.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SudoUser {
    pub(crate) name: &'static str,
    pub(crate) password: &'static str,
}

impl Context<'_> {
    /// `kk-lab …`
    pub(crate) fn lab_job(&self, words: &[&str]) -> Job {
        let number = self.tools.lab.number.to_string();
        Job::new(&self.tools.kk_lab).args(["--lab", &number]).args(words.iter().copied())
    }

    /// Switches a host off as a power cut would, or on again.
    pub(crate) fn power(&self, host: &str, state: &str) -> Result<()> {
        self.run("power", self.lab_job(&["power", state, host]).limit(POWER_LIMIT))?.ok()?;
        Ok(())
    }

    /// Boots `hosts` fresh hosts and has their cluster file written to `file`.
    pub(crate) fn lab_up(&self, hosts: u8, file: &Path, user: Option<SudoUser>, more: &[&str]) -> Result<()> {
        let up = self.lab_job(&["up", "--fresh", "--hosts", &hosts.to_string()]);
        let mut job = up.args(more.iter().copied()).args(["--config".as_ref(), file.as_os_str()]);
        if let Some(user) = user {
            job = job.args(["--user", user.name]).env("KK_LAB_SUDO_PASSWORD", user.password);
        }
        self.run("lab-up", job.limit(UP_LIMIT))?.ok()?;
        Ok(())
    }

    /// A job that runs a shell script on a host as root, not by SSH.
    pub(crate) fn on_host(&self, host: &str, script: &str) -> Job {
        self.lab_job(&["exec", host, "--", "sh", "-euc", script])
    }

    /// Runs a shell script on a host and returns what it printed. Errors: it fails.
    pub(crate) fn host(&self, host: &str, script: &str) -> Result<String> {
        self.try_host(host, script)?.ok().with_context(|| format!("on {host}"))
    }

    /// Runs a shell script on a host.
    pub(crate) fn try_host(&self, host: &str, script: &str) -> Result<Finished> {
        self.run(host, self.on_host(host, script))
    }

    /// Starts a program of this machine inside the lab's network.
    pub(crate) fn enter(&self, words: &[&str]) -> Job {
        self.lab_job(&["enter", "--"]).args(words.iter().copied())
    }

    /// Occupies a TCP port of a host until the returned value is dropped.
    pub(crate) fn occupy(&self, host: &str, port: u16) -> Result<Running> {
        let listen = format!("exec socat TCP-LISTEN:{port},reuseaddr,fork OPEN:/dev/null");
        let listener = self.start("occupy", self.on_host(host, &listen).limit(Duration::from_hours(1)))?;
        let ask = format!("ss -Hltn 'sport = :{port}'");
        self.until(&format!("port {port} of {host} taken"), Duration::from_secs(10), || {
            Ok(Some(()).filter(|()| self.host(host, &ask).is_ok_and(|list| !list.trim().is_empty())))
        })?;
        Ok(listener)
    }
}
