//! Processor time that the lab uses: hosts, `kk` and the servers each have control groups, so other processes of the machine are
//! not counted.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::thread::available_parallelism;

use anyhow::{Result, ensure};

use crate::lab::Lab;

/// The group of everything that runs by `kk-lab enter`: `kk`.
const ENTER: &str = "enter";

/// Seconds of a processor by control group, without the prefix.
#[derive(Clone, Debug)]
pub(crate) struct Usage(BTreeMap<String, f64>);

/// Seconds of a processor that a run used.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct CoreSeconds {
    pub(crate) hosts: f64,
    pub(crate) kk: f64,
    /// Mirror and registry.
    pub(crate) servers: f64,
}

impl Usage {
    /// The processor time that the lab has used so far. Errors: the kernel does not count it.
    pub(crate) fn now(lab: Lab) -> Result<Self> {
        let prefix = lab.control_groups();
        let v1 = Path::new("/sys/fs/cgroup/cpuacct");
        let root = if v1.exists() { v1 } else { Path::new("/sys/fs/cgroup") };
        let mut groups = BTreeMap::new();
        for entry in fs::read_dir(root)?.flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            if let Some(name) = name.strip_prefix(&prefix)
                && let Some(seconds) = seconds_of(&entry.path())
            {
                groups.insert(name.to_owned(), seconds);
            }
        }
        ensure!(!groups.is_empty(), "no control group of the lab counts processor time");
        Ok(Self(groups))
    }

    /// The processor time that was used since `before`.
    pub(crate) fn since(&self, before: &Self) -> CoreSeconds {
        let mut used = CoreSeconds { hosts: 0.0, kk: 0.0, servers: 0.0 };
        for (name, now) in &self.0 {
            let seconds = now - before.0.get(name).copied().unwrap_or_default();
            if name == ENTER {
                used.kk += seconds;
            } else if name.starts_with("node") {
                used.hosts += seconds;
            } else {
                used.servers += seconds;
            }
        }
        used
    }
}

impl CoreSeconds {
    pub(crate) fn total(self) -> f64 {
        self.hosts + self.kk + self.servers
    }

    /// The least time it could take on this machine: all processors at work all the time.
    pub(crate) fn bound(self) -> f64 {
        let cores = available_parallelism().map_or(1, std::num::NonZero::get);
        self.total() / f64::from(u32::try_from(cores).unwrap_or(1))
    }
}

/// Nanoseconds in v1, a line of microseconds in v2.
fn seconds_of(group: &Path) -> Option<f64> {
    if let Ok(text) = fs::read_to_string(group.join("cpuacct.usage")) {
        return Some(text.trim().parse::<f64>().ok()? / 1e9);
    }
    let text = fs::read_to_string(group.join("cpu.stat")).ok()?;
    let microseconds = text.lines().find_map(|line| line.strip_prefix("usage_usec "))?;
    Some(microseconds.trim().parse::<f64>().ok()? / 1e6)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_used_is_told_apart() {
        let usage = |pairs: &[(&str, f64)]| {
            Usage(pairs.iter().map(|(name, seconds)| ((*name).to_owned(), *seconds)).collect())
        };
        let before = usage(&[("enter", 1.0), ("node1", 10.0), ("mirror", 1.0)]);
        let after =
            usage(&[("enter", 5.0), ("node1", 20.0), ("node2", 6.0), ("mirror", 1.5), ("registry", 0.5)]);
        let used = after.since(&before);
        assert_eq!(used, CoreSeconds { hosts: 16.0, kk: 4.0, servers: 1.0 });
        assert!((used.total() - 21.0).abs() < 1e-9 && used.bound() <= 21.0);
    }
}
