//! What is in the files of simulated hosts, and shell snippets that look at them: the host's own `sh` of this machine
//! runs them on a copy of the files that they name.
//!
//! So a new question of kk needs nothing here, unless it asks a program. Hosts with the same files give the same
//! answers: each is worked out once.

use std::{
    collections::{BTreeMap, HashMap},
    fmt::Write as _,
    fs::{self, Permissions},
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use anyhow::{Context as _, Result};

use super::host::{File, Unit};

/// Directories of a host; those of this machine are not looked at.
const TOP: [&str; 9] = ["/etc", "/home", "/lib", "/opt", "/proc", "/root", "/run", "/sys", "/var"];
/// Programs that say something about a host. The others are this machine's.
const PROGRAMS: [(&str, &str); 4] = [
    ("systemctl", include_str!("systemctl.sh")),
    ("journalctl", "#!/bin/sh\n"),
    ("firewall-cmd", "#!/bin/sh\nexit 1\n"),
    ("ufw", "#!/bin/sh\nexit 1\n"),
];

/// Contents by their sums, and the answers of snippets. One for all hosts of a bench.
#[derive(Debug, Default)]
pub(super) struct Disk {
    directory: PathBuf,
    contents: Mutex<HashMap<String, Arc<[u8]>>>,
    answers: Mutex<HashMap<String, (u8, String)>>,
}

/// The part of a host that snippets see.
#[derive(Clone, Copy)]
pub(super) struct View<'a> {
    pub(super) files: &'a BTreeMap<String, File>,
    pub(super) units: &'a BTreeMap<String, Unit>,
    pub(super) machine_id: &'a str,
}

impl Disk {
    /// Works in a directory of its own.
    pub(super) fn new(directory: &Path) -> Result<Self> {
        let programs = directory.join("programs");
        fs::create_dir_all(&programs)?;
        for (name, text) in PROGRAMS {
            fs::write(programs.join(name), text)?;
            fs::set_permissions(programs.join(name), Permissions::from_mode(0o755))?;
        }
        Ok(Self { directory: directory.to_owned(), ..Self::default() })
    }

    /// Keeps a content; its sum.
    pub(super) fn keep(&self, content: &[u8]) -> String {
        let sum = kk_util::sha256(content);
        lock(&self.contents).entry(sum.clone()).or_insert_with(|| content.into());
        sum
    }

    /// Exit code and output of a snippet on a host.
    pub(super) fn run(&self, snippet: &str, host: View<'_>) -> Result<(u8, String)> {
        let named = paths(snippet);
        let machine_id = ("/etc/machine-id".to_owned(), self.keep(host.machine_id.as_bytes()));
        let mut files: BTreeMap<&str, &str> = host
            .files
            .iter()
            .filter(|(_, file)| !file.directory)
            .map(|(path, file)| (path.as_str(), file.sha256.as_str()))
            .collect();
        files.insert(&machine_id.0, &machine_id.1);
        files.retain(|path, _| {
            named.iter().any(|name| {
                path.strip_prefix(*name).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
            })
        });
        // To ten seconds, so that hosts whose units started together are alike.
        let units: BTreeMap<&str, u128> = host
            .units
            .iter()
            .filter(|(name, _)| snippet.contains(name.as_str()))
            .filter_map(|(name, unit)| Some((name.as_str(), unit.active_since_ms? / 10_000 * 10_000_000)))
            .collect();
        let mut key = snippet.to_owned();
        let _ = write!(key, "\0{files:?}\0{units:?}");
        let mut answers = lock(&self.answers);
        if let Some(answer) = answers.get(&key) {
            return Ok(answer.clone());
        }
        let answer = self.ask(snippet, &files, &units)?;
        answers.insert(key, answer.clone());
        Ok(answer)
    }

    fn ask(
        &self,
        snippet: &str,
        files: &BTreeMap<&str, &str>,
        units: &BTreeMap<&str, u128>,
    ) -> Result<(u8, String)> {
        let (root, work, active) =
            (self.directory.join("root"), self.directory.join("work"), self.directory.join("units"));
        for directory in [&root, &work, &active] {
            kk_test_common::empty(directory)?;
        }
        for (path, sum) in files {
            let file = root.join(path.trim_start_matches('/'));
            fs::create_dir_all(file.parent().context("a file lies in a directory")?)?;
            // What was uploaded is a program: nobody reads it.
            fs::write(file, lock(&self.contents).get(*sum).cloned().unwrap_or_default())?;
        }
        for (unit, since) in units {
            fs::write(active.join(unit), since.to_string())?;
        }
        let ran = Command::new("sh")
            .args(["-c", &below(snippet, &root.display().to_string())])
            .current_dir(work)
            .env("PATH", format!("{}:/usr/bin:/bin", self.directory.join("programs").display()))
            .env("UNITS", active)
            .stdin(Stdio::null())
            .output()
            .context("cannot start sh")?;
        let code = ran.status.code().and_then(|code| code.try_into().ok()).unwrap_or(u8::MAX);
        Ok((code, String::from_utf8_lossy(&ran.stdout).into_owned()))
    }
}

/// Where paths of a host begin and end in a text.
fn places(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let part = |c: char| c.is_ascii_alphanumeric() || "._-@/".contains(c);
    text.match_indices('/').filter_map(move |(at, _)| {
        if text[..at].ends_with(part) {
            return None;
        }
        let path = text[at..].split(|c| !part(c)).next()?;
        TOP.iter()
            .any(|top| path.strip_prefix(top).is_some_and(|rest| rest.is_empty() || rest.starts_with('/')))
            .then_some((at, path))
    })
}

fn paths(text: &str) -> Vec<&str> {
    places(text).map(|(_, path)| path.trim_end_matches('/')).collect()
}

/// The text with all paths of a host below a directory.
fn below(text: &str, root: &str) -> String {
    let (mut new, mut done) = (String::new(), 0);
    for (at, _) in places(text) {
        new += &text[done..at];
        new += root;
        done = at;
    }
    new + &text[done..]
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_snippet_sees_the_files_and_units_of_its_host_only() {
        let directory = std::env::temp_dir().join(format!("kk-e2e-disk-{}", std::process::id()));
        let disk = Disk::new(&directory).unwrap();
        let file = |content: &[u8]| File {
            directory: false,
            mode: "644".into(),
            owner: "root:root".into(),
            sha256: disk.keep(content),
            written_ms: 0,
        };
        let files = BTreeMap::from([("/etc/app/a.conf".to_owned(), file(b"key: one\n"))]);
        let units = BTreeMap::from([(
            "kubelet.service".to_owned(),
            Unit { enabled: true, active_since_ms: Some(20_000) },
        )]);
        let host = View { files: &files, units: &units, machine_id: "77" };
        let nobody = View { files: &BTreeMap::new(), units: &BTreeMap::new(), machine_id: "78" };
        for (snippet, there, elsewhere) in [
            (
                "conf=/etc/app; sed -n 's/^key: //p' $conf/*.conf 2>/dev/null; cat '/etc/machine-id'",
                "one\n77",
                "78",
            ),
            ("[ -e /etc/passwd ] || echo none", "none\n", "none\n"),
            ("if systemctl -q is-active kubelet.service; then echo active; fi", "active\n", ""),
            (
                "systemctl show -p ExecMainStartTimestampMonotonic kubelet.service",
                "ExecMainStartTimestampMonotonic=20000000\n",
                "",
            ),
        ] {
            for (host, printed) in [(host, there), (nobody, elsewhere)] {
                assert_eq!(disk.run(snippet, host).unwrap(), (0, printed.to_owned()), "{snippet}");
            }
        }
        assert_eq!(disk.run("exit 3", host).unwrap().0, 3);
        fs::remove_dir_all(&directory).unwrap();
    }

    #[test]
    fn only_paths_of_the_host_are_moved() {
        assert_eq!(
            below("cat /etc/a '/var/b' x=/run/c 2>/dev/null https://h/etc/d io/run/e s/^etc//", "/r"),
            "cat /r/etc/a '/r/var/b' x=/r/run/c 2>/dev/null https://h/etc/d io/run/e s/^etc//"
        );
    }
}
