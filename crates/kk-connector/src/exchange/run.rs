//! Implements `Connection::run` for every [`Caller`].

use super::{Call, Caller, Lines, Side};
use crate::{Command, Error, Output};

/// Runs a script.
pub(crate) async fn run(caller: &dyn Caller, command: Command) -> Result<Output, Error> {
    let Command { script, files, timeout, cancel, lines, keep, whole } = command;
    let side = lines.map_or(Side::Quiet, |receiver| Side::Lines(Lines::new(receiver)));
    let reply = caller.call(Call { script, files, timeout, cancel, side, keep, whole }).await?;
    Ok(Output {
        code: reply.code,
        stdout: String::from_utf8_lossy(&reply.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&reply.stderr).into_owned(),
    })
}
