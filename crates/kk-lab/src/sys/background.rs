//! Processes that outlive this program: hosts and servers. Each joins its own control groups before it executes its program, so
//! that no process it ever starts can leave them.

use std::fs::File;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result};

use crate::sys::cgroup;
use crate::sys::run::command;

/// Writes the shell's id into each file up to `--`, then executes the command after it. Arguments are never read as shell text.
const JOIN: &str = r#"while [ "$1" != -- ]; do echo $$ > "$1" || exit 1; shift; done; shift; exec "$@""#;

/// Closes all open files of the caller except the standard streams: a pipe or a lock would stay open as long as the lab. Only
/// bash can name a descriptor above 9.
const CLOSE: &str = r#"for fd in /proc/$$/fd/*; do fd=${fd##*/}; ((fd < 3)) || eval "exec $fd>&-"; done; "#;

/// The same command, in the control group `name` and (with `detached`) in a session of its own, so that a closed
/// terminal does not end it, and without the caller's open files.
pub(crate) fn in_group(name: &str, wanted: &Command, detached: bool) -> Result<Command> {
    let mut all = if detached {
        command("setsid", ["bash", "-c", &format!("{CLOSE}{JOIN}"), "bash"])
    } else {
        command("sh", ["-c", JOIN, "sh"])
    };
    all.args(cgroup::create(name)?).arg("--");
    all.arg(wanted.get_program()).args(wanted.get_args());
    for (name, value) in wanted.get_envs() {
        match value {
            Some(value) => all.env(name, value),
            None => all.env_remove(name),
        };
    }
    Ok(all)
}

/// Starts `wanted` in the group `name`, its output into `log`, and does not wait for it.
pub(crate) fn start(name: &str, wanted: &Command, log: &Path) -> Result<Child> {
    let file = File::create(log).with_context(|| format!("cannot write {}", log.display()))?;
    in_group(name, wanted, true)?
        .stdin(Stdio::null())
        .stdout(file.try_clone()?)
        .stderr(file)
        .spawn()
        .with_context(|| format!("cannot start {name}"))
}
