//! The program itself, without a cluster.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use serde::Deserialize;

use crate::value::{contains, same};

/// A call of `shell-operator` in a directory of its own.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct Program {
    #[serde(default)]
    files: BTreeMap<String, String>,
    /// Mode of the files.
    #[serde(default = "executable")]
    mode: String,
    arguments: Vec<String>,
    #[serde(default)]
    environment: BTreeMap<String, String>,
    exit: i32,
    /// Parts of what it prints.
    output: Vec<String>,
    /// Texts that it must not print.
    #[serde(default)]
    no_output: Vec<String>,
    /// All files that exist afterwards in the directory `tmp`.
    temporary_files: Option<Vec<String>>,
}

fn executable() -> String {
    "755".to_owned()
}

impl Program {
    pub(crate) fn run(&self) -> Result<(), String> {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("tmp")).unwrap();
        for (name, text) in &self.files {
            make_file(&dir.path().join(name), text, &self.mode)?;
        }
        let output = Command::new(env!("CARGO_BIN_EXE_shell-operator"))
            .args(&self.arguments)
            .current_dir(dir.path())
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("TMPDIR", dir.path().join("tmp"))
            .envs(&self.environment)
            .stdin(Stdio::null())
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
        contains(&text, &self.output)?;
        if let Some(part) = self.no_output.iter().find(|part| text.contains(part.as_str())) {
            return Err(format!("{part:?} is in:\n{text}"));
        }
        same(output.status.code(), Some(self.exit))
            .map_err(|why| format!("exit code: {why}; it printed:\n{text}"))?;
        let Some(expected) = &self.temporary_files else { return Ok(()) };
        let entries = std::fs::read_dir(dir.path().join("tmp")).unwrap();
        same(
            &entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect::<Vec<_>>(),
            expected,
        )
    }
}

/// A file with the directories above it. A mode that begins with `->` is the target of a link.
///
/// Another process writes it: a file that this one has open, if only in a child that another case is about to start, cannot
/// be run (execve(2), ETXTBSY).
pub(crate) fn make_file(path: &Path, text: &str, mode: &str) -> Result<(), String> {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    if let Some(target) = mode.strip_prefix("->") {
        return std::os::unix::fs::symlink(target, path).map_err(|error| error.to_string());
    }
    let mut writer = Command::new("sh")
        .args(["-c", "cat >\"$1\" && chmod \"$2\" \"$1\"", "sh"])
        .args([path.as_os_str(), OsStr::new(mode)])
        .stdin(Stdio::piped())
        .spawn()
        .map_err(|error| error.to_string())?;
    writer.stdin.take().unwrap().write_all(text.as_bytes()).map_err(|error| error.to_string())?;
    if writer.wait().unwrap().success() {
        Ok(())
    } else {
        Err(format!("cannot write {} with mode {mode}", path.display()))
    }
}
