//! A host's root in a temporary directory, with fakes for the commands that change the machine.

use std::{
    collections::BTreeMap,
    fs,
    os::unix::fs::{MetadataExt as _, PermissionsExt as _},
    path::{Path, PathBuf},
    process::{Command, Output},
};

/// A directory that contains a host's root, scripts, and fake commands.
pub(crate) struct Host {
    pub(crate) directory: tempfile::TempDir,
    shell: &'static [&'static str],
}

impl Host {
    pub(crate) fn new() -> Self {
        Self::with_shell(&["sh"])
    }

    pub(crate) fn with_shell(shell: &'static [&'static str]) -> Self {
        let host = Self { directory: tempfile::tempdir().unwrap(), shell };
        for name in ["root/etc", "root/proc/sys/net/ipv4", "root/usr", "work", "bin"] {
            fs::create_dir_all(host.directory.path().join(name)).unwrap();
        }
        // The fakes record their calls in `calls`, and fail if a file requests it. Another process writes them. If this process
        // has a file open, even only in a child that another test is about to start, the file cannot be run (execve(2), ETXTBSY).
        let text = "#!/bin/sh\ncd \"${0%/*}/..\" || exit\nname=${0##*/}\necho \"$name\" \"$@\" >>calls\n\
            [ ! -e \"said.$name.$1\" ] || cat \"said.$name.$1\"\n[ ! -e \"fail.$name.$1\" ]\n";
        fs::write(host.directory.path().join("fake"), text).unwrap();
        let copied = Command::new("sh")
            .args(["-ec", "for name; do cp fake \"bin/$name\"; chmod 755 \"bin/$name\"; done", "sh"])
            .args(["systemctl", "journalctl", "modprobe", "useradd", "userdel", "swapoff", "swapon", "id"])
            .args(["dpkg", "dpkg-query"])
            .current_dir(host.directory.path())
            .status();
        assert!(copied.unwrap().success());
        host
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join("root").join(name)
    }

    pub(crate) fn write(&self, name: &str, text: &str) {
        fs::create_dir_all(self.path(name).parent().unwrap()).unwrap();
        fs::write(self.path(name), text).unwrap();
    }

    pub(crate) fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap()
    }

    /// Makes a fake command print a text (`said`) or fail (`fail`) when it is called with `verb`.
    pub(crate) fn fake(&self, what: &str, program: &str, verb: &str, text: &str) {
        let path = self.directory.path().join(format!("{what}.{program}.{verb}"));
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// The calls of the fake commands since the last time.
    pub(crate) fn calls(&self) -> Vec<String> {
        let path = self.directory.path().join("calls");
        let text = fs::read_to_string(&path).unwrap_or_default();
        let _ = fs::remove_file(path);
        text.lines().map(str::to_owned).collect()
    }

    fn run(&self, script: &str) -> Output {
        let lib = concat!(env!("CARGO_MANIFEST_DIR"), "/src/lib.sh");
        let path =
            format!("{}:{}", self.directory.path().join("bin").display(), std::env::var("PATH").unwrap());
        let me = Command::new("id").args(["-un"]).output().unwrap();
        let group = Command::new("id").args(["-gn"]).output().unwrap();
        let word = |output: &Output| String::from_utf8_lossy(&output.stdout).trim().to_owned();
        Command::new(self.shell[0])
            .args(&self.shell[1..])
            .args(["-e", "-c", &format!(". {lib}\n{script}")])
            .current_dir(self.directory.path().join("work"))
            .env("KK_ROOT", self.directory.path().join("root"))
            .env("ME", format!("{}:{}", word(&me), word(&group)))
            .env("PATH", path)
            .output()
            .unwrap()
    }

    pub(crate) fn ok(&self, script: &str) -> String {
        let output = self.run(script);
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{script}: {errors}");
        errors
    }

    pub(crate) fn fails(&self, script: &str) -> String {
        let output = self.run(script);
        assert!(!output.status.success(), "{script} should have failed");
        String::from_utf8_lossy(&output.stderr).into_owned()
    }

    /// The user id of a file's owner, without following a link.
    pub(crate) fn owner(&self, name: &str) -> u32 {
        fs::symlink_metadata(self.path(name)).unwrap().uid()
    }

    pub(crate) fn owned(&self) -> Vec<String> {
        self.read("etc/kubekey/owned").lines().map(|line| line.replace('\t', " ")).collect()
    }

    pub(crate) fn mode(&self, name: &str) -> u32 {
        fs::symlink_metadata(self.path(name)).unwrap().permissions().mode() & 0o7777
    }

    /// Every path below the root with its kind, mode, time and content.
    pub(crate) fn picture(&self) -> BTreeMap<PathBuf, String> {
        let mut all = BTreeMap::new();
        let mut directories = vec![self.path("")];
        while let Some(directory) = directories.pop() {
            for entry in fs::read_dir(directory).unwrap() {
                let path = entry.unwrap().path();
                let data = fs::symlink_metadata(&path).unwrap();
                let content = if data.is_dir() {
                    directories.push(path.clone());
                    "directory".to_owned()
                } else if data.is_symlink() {
                    format!("to {}", fs::read_link(&path).unwrap().display())
                } else {
                    format!("{:?} {}", data.modified().unwrap(), fs::read_to_string(&path).unwrap())
                };
                all.insert(path, format!("{:o} {content}", data.permissions().mode()));
            }
        }
        all
    }
}

/// The names in a directory, sorted.
pub(crate) fn names(directory: &Path) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}
