//! Runs the tools on this machine that collect packages.

use std::process::Stdio;

use kk_config::OperatingSystem;
use tokio::process::Command;

use crate::Error;

/// An error about the packages of a system, with its hint.
pub(super) fn failed(system: &OperatingSystem, reason: String, hint: impl Into<String>) -> Error {
    Error::Packages { system: system.to_string(), reason, hint: hint.into() }
}

/// Runs a tool and returns its output. `missing` is the hint if the tool is not installed; `explain` derives reason and hint from
/// the tool's error output.
pub(super) async fn run(
    mut command: Command,
    system: &OperatingSystem,
    missing: &str,
    explain: impl FnOnce(&str) -> (String, String),
) -> Result<String, Error> {
    let program = command.as_std().get_program().to_string_lossy().into_owned();
    command.kill_on_drop(true).env("LC_ALL", "C").stdin(Stdio::null());
    let output = command
        .output()
        .await
        .map_err(|error| failed(system, format!("cannot run {program} on this machine: {error}"), missing))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let (reason, hint) = explain(&String::from_utf8_lossy(&output.stderr));
    Err(failed(system, format!("{program}: {}", reason.replace(char::is_control, " ")), hint))
}

/// The last line that is not empty.
pub(super) fn last_line(said: &str) -> &str {
    said.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or("it says nothing")
}
