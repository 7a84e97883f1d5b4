//! Runs the programs of this machine that collect packages.

use std::process::Stdio;

use kk_config::OperatingSystem;
use tokio::process::Command;

use crate::Error;

/// What went wrong with the packages of a system, and what to do.
pub(super) fn failed(system: &OperatingSystem, reason: String, hint: impl Into<String>) -> Error {
    Error::Packages { system: system.to_string(), reason, hint: hint.into() }
}

/// What the program prints. `missing` says what to do where there is no such program; `explain` makes reason and hint of what
/// it says about an error.
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

/// The last line with something in it.
pub(super) fn last_line(said: &str) -> &str {
    said.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or("it says nothing")
}
