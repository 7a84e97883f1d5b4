//! Running other programs: arguments are passed as they are (never through a shell), and a failure names the
//! command and the last lines it wrote.

use std::ffi::OsStr;
use std::io::Write;
use std::process::{Command, Output, Stdio};

use anyhow::{Context, Result, bail};

/// Last lines of a failed program's output that its error repeats.
const LAST_LINES: usize = 15;

/// A command with fixed arguments.
pub(crate) fn command<S: AsRef<OsStr>>(program: &str, args: impl IntoIterator<Item = S>) -> Command {
    let mut command = Command::new(program);
    command.args(args);
    command
}

/// A program that runs for minutes. It ends together with this one, however this one ends: nothing else would end it.
pub(crate) fn bound(program: impl AsRef<OsStr>) -> Command {
    let mut command = command("setpriv", ["--pdeathsig", "TERM", "--"]);
    command.arg(program);
    command
}

/// Runs to the end and returns stdout. Errors: the program is missing, or it ends with another code than 0.
pub(crate) fn output(command: &mut Command) -> Result<String> {
    let result = command
        .stdin(Stdio::null())
        .output()
        .with_context(|| format!("cannot start `{}`", shown(command)))?;
    checked(command, &result)
}

/// As [`output`], with `input` on the program's stdin (for what must not be an argument).
pub(crate) fn output_with_input(command: &mut Command, input: &str) -> Result<String> {
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .with_context(|| format!("cannot start `{}`", shown(command)))?;
    let mut stdin = child.stdin.take().context("the child has no stdin")?;
    // A program that ends without reading reports the reason itself.
    let written = stdin.write_all(input.as_bytes());
    drop(stdin);
    let said = checked(command, &child.wait_with_output()?)?;
    written.with_context(|| format!("`{}` did not read its input", shown(command)))?;
    Ok(said)
}

/// Whether the command can be started and ends with 0; its output is dropped.
pub(crate) fn succeeds(command: &mut Command) -> bool {
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}

fn checked(command: &Command, result: &Output) -> Result<String> {
    if !result.status.success() {
        let said =
            format!("{}{}", String::from_utf8_lossy(&result.stdout), String::from_utf8_lossy(&result.stderr));
        bail!("`{}` failed ({}):\n{}", shown(command), result.status, last_lines(&said));
    }
    Ok(String::from_utf8_lossy(&result.stdout).into_owned())
}

fn shown(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    words.map(OsStr::to_string_lossy).collect::<Vec<_>>().join(" ")
}

pub(crate) fn last_lines(text: &str) -> String {
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(LAST_LINES)..].join("\n")
}
