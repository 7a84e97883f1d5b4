//! Explains to the author of a hook why its program cannot be started.

use std::path::Path;

/// Explains the system's error to the author of a hook.
pub(super) fn explain(path: &Path, error: &std::io::Error) -> String {
    let begin = std::fs::read(path).map(|bytes| bytes[..bytes.len().min(200)].to_vec()).unwrap_or_default();
    let text = String::from_utf8_lossy(&begin);
    let hint = match error.raw_os_error() {
        Some(8) if text.trim_start().starts_with("#!") => {
            "hint: the first line must begin with '#!'; remove the blank lines or spaces before it"
        }
        Some(8) if text.is_empty() => "hint: the file is empty",
        Some(8) => "hint: it is neither a script that begins with '#!' nor a program for this machine",
        Some(13) => "hint: chmod +x it; for a ConfigMap volume set defaultMode: 0755",
        Some(2) if path.exists() && text.contains("\r\n") => {
            "hint: its lines end in CR LF, so the interpreter is not found; convert it to LF"
        }
        Some(2) if path.exists() && !interpreter_exists(&text) => {
            "hint: the interpreter in its first line does not exist"
        }
        _ => return error.to_string(),
    };
    format!("{error}; {hint}")
}

/// Whether the program that `#!` names is there; a program for this machine has none.
fn interpreter_exists(text: &str) -> bool {
    let line = text.strip_prefix("#!").and_then(|rest| rest.lines().next());
    line.and_then(|line| line.split_whitespace().next()).is_none_or(|program| Path::new(program).exists())
}
