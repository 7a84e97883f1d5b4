//! Several operations in one round trip: the script that drives them on the host, and the parser of its output.
//!
//! Each operation runs in a separate `sh`, in a directory with its files. The driver's standard output carries the protocol:
//! lines that begin with `@NONCE` frame the operations, and all other lines are an operation's standard error, live. An
//! operation's standard output is discarded or, if a slot needs it, stored in a file and sent after the operation has ended.

use std::{
    fmt::Write as _,
    sync::{Arc, LazyLock},
};

use kk_connector::{Payload, nonce, quote};

use super::host_lock::Owner;
use crate::{Load, Script, shell};

/// The library, shared by all batches.
static LIB: LazyLock<Arc<[u8]>> = LazyLock::new(|| shell::LIB.as_bytes().into());

/// Maximum number of lines of standard error in a failure.
const STDERR_LINES: usize = 20;
/// Maximum length of such a line, in characters.
const STDERR_WIDTH: usize = 2000;
/// Maximum size of an operation's output for slots, in bytes.
pub(super) const STDOUT: usize = 4 << 20;
/// Maximum number of notes of one operation.
const NOTES: usize = 100;

/// Prefix of the line by which `kk_do` of `lib.sh` names the command that failed.
const FAILED_COMMAND: &str = "kk-command: ";
/// Prefix of a line of `kk_note`.
const NOTE: &str = "note: ";

/// Ends a process and all its descendants. Each is stopped first, so that it does not continue when a child that it waits for has
/// ended. POSIX sh has no process groups without a terminal.
const END: &str = r#"kk_end() {
kill -s STOP "$1" 2>/dev/null || return 0
for kk_child in $(cat /proc/[0-9]*/stat 2>/dev/null | sed -n "s/^\([0-9]*\) (.*) [A-Za-z] $1 .*/\1/p"); do kk_end "$kk_child"; done
kill "$1" 2>/dev/null || :
kill -s CONT "$1" 2>/dev/null || :
}
"#;

/// The driver's functions. The engine creates a file `stop` in the directory. Then no new operation begins, and an operation that
/// only waits is ended. Operations do not inherit the lock on the host (8). There is no race: either this script sees the file
/// after it has recorded the waiting operation, or [`stop`] finds that record.
const DRIVER: &str = r#"kk_operation() {
[ ! -e stop ] || { kk_say stopped; exit 0; }
kk_say start "$1"
if [ "$3" = wait ]; then
( cd "$1.d" && exec sh -e "../$1.sh" ) >"$2" 2>&4 </dev/null 8>&- &
echo $! >waiting
[ ! -e stop ] || kk_end $!
wait $!
kk_code=$?
rm -f waiting
[ $kk_code -eq 0 ] || [ ! -e stop ] || { kk_say stopped; exit 0; }
else
( cd "$1.d" && exec sh -e "../$1.sh" ) >"$2" 2>&4 </dev/null 8>&-
kk_code=$?
fi
[ $kk_code -ne 0 ] || [ ! -f "$2" ] || { kk_say out "$1"; cat "$2"; }
rm -rf "$1.d"
kk_say end "$1" $kk_code
[ $kk_code -eq 0 ] || exit 0
}
exec 4>&1
kk_say dir "$PWD"
"#;

/// The command that makes the running operation of a batch the last, and ends it if it only waits.
pub(super) fn stop(directory: &str) -> String {
    let directory = quote(directory);
    format!("cd {directory} || exit 0\n: >stop\n{END}[ ! -r waiting ] || kk_end \"$(cat waiting)\"\n")
}

/// The driver's text and all files of a batch.
pub(super) struct Batch {
    pub(super) script: String,
    pub(super) files: Vec<Payload>,
    pub(super) nonce: String,
}

impl Batch {
    /// Compiles operations, to be run in this order until one fails. `owner` takes the lock on the host, and releases it at the
    /// end if these are the `last` operations there.
    pub(super) fn new<'a>(
        scripts: impl IntoIterator<Item = (&'a Script, Load)>,
        owner: Option<&Owner>,
        last: bool,
    ) -> Self {
        let nonce = nonce();
        let mut files = vec![Payload { name: "lib.sh".into(), content: Arc::clone(&LIB) }];
        let reset = shell::RESET;
        let mut driver = format!("{reset}kk_say() {{ printf '\\n@{nonce} %s\\n' \"$*\"; }}\n{END}{DRIVER}");
        if let Some(owner) = owner {
            driver.push_str(&owner.lock());
        }
        for (number, (script, load)) in scripts.into_iter().enumerate() {
            files.push(payload(format!("{number}.sh"), &format!(". ../lib.sh\n{}", script.text)));
            let _ = writeln!(driver, "mkdir {number}.d");
            for file in &script.files {
                let name = format!("{number}.{}", file.name);
                let (from, to) = (format!("./{name}"), format!("{number}.d/{}", file.name));
                let _ = writeln!(driver, "mv {} {}", quote(&from), quote(&to));
                files.push(Payload { name, content: file.content.clone() });
            }
            let output = if script.output.is_some() { "out" } else { "/dev/null" };
            let kind = if load == Load::Wait { "wait" } else { "work" };
            let _ = writeln!(driver, "kk_operation {number} {output} {kind}");
        }
        if owner.is_some() && last {
            driver.push_str("kk_unlock\n");
        }
        Self { script: driver, files, nonce }
    }
}

fn payload(name: String, text: &str) -> Payload {
    Payload { name, content: text.as_bytes().into() }
}

/// A message of the driver.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Signal {
    /// The directory in which the batch runs on the host.
    Directory(String),
    /// No operation begins, because another owner has the lock on the host: the first operation fails with this reason.
    Refused,
    /// An operation begins.
    Started(usize),
    /// An operation has ended.
    Ended(EndedOperation),
}

/// The result of an operation that has ended.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct EndedOperation {
    pub(super) operation: usize,
    pub(super) code: i32,
    /// `None`: the output was too large.
    pub(super) stdout: Option<String>,
    /// Its last lines of standard error, without notes.
    pub(super) stderr: Vec<String>,
    /// Its notes.
    pub(super) notes: Vec<String>,
    /// The command of the script that failed, if the script names it.
    pub(super) command: Option<String>,
}

/// The standard output of an operation.
#[derive(Default)]
struct Printed {
    text: String,
    has_lines: bool,
    is_too_much: bool,
}

impl Printed {
    /// Restores the output exactly: the driver's own newline before its mark ends the last line, or follows an empty one.
    fn push(&mut self, line: &str) {
        if self.is_too_much || self.text.len() + line.len() >= STDOUT {
            self.is_too_much = true;
            self.text = String::new();
            return;
        }
        if self.has_lines {
            self.text.push('\n');
        }
        self.text.push_str(line);
        self.has_lines = true;
    }
}

/// Parses the driver's lines.
pub(super) struct Reader {
    mark: String,
    /// The standard output of the running operation, once it has ended.
    stdout: Option<Printed>,
    /// Last lines of standard error of the running operation.
    stderr: Vec<String>,
    notes: Vec<String>,
    command: Option<String>,
}

impl Reader {
    pub(super) fn new(nonce: &str) -> Self {
        Self {
            mark: format!("@{nonce} "),
            stdout: None,
            stderr: Vec::new(),
            notes: Vec::new(),
            command: None,
        }
    }

    /// Handles the next line.
    pub(super) fn push(&mut self, line: &str) -> Option<Signal> {
        let Some(words) = line.strip_prefix(&self.mark) else {
            match &mut self.stdout {
                Some(stdout) => stdout.push(line),
                None => self.complained(line),
            }
            return None;
        };
        let (kind, rest) = words.split_once(' ').unwrap_or((words, ""));
        match kind {
            "dir" => Some(Signal::Directory(rest.to_owned())),
            "refused" => {
                self.forget();
                Some(Signal::Refused)
            }
            "start" => {
                self.forget();
                Some(Signal::Started(rest.parse().ok()?))
            }
            "out" => {
                self.stdout = Some(Printed::default());
                None
            }
            "end" => {
                let (operation, code) = rest.split_once(' ')?;
                let stdout = self.stdout.take().unwrap_or_default();
                let stdout = (!stdout.is_too_much).then_some(stdout.text);
                let (operation, code) = (operation.parse().ok()?, code.parse().ok()?);
                let (notes, command) = (std::mem::take(&mut self.notes), self.command.take());
                Some(Signal::Ended(EndedOperation {
                    operation,
                    code,
                    stdout,
                    stderr: self.stderr(),
                    notes,
                    command,
                }))
            }
            _ => None,
        }
    }

    /// Forgets the lines so far: the following lines are of another operation.
    fn forget(&mut self) {
        self.stderr.clear();
        self.notes.clear();
        self.command = None;
    }

    /// Handles a line of standard error.
    fn complained(&mut self, line: &str) {
        if let Some(command) = line.strip_prefix(FAILED_COMMAND) {
            self.command = Some(command.chars().take(STDERR_WIDTH).collect());
        } else if let Some(note) = line.strip_prefix(NOTE) {
            if self.notes.len() < NOTES {
                self.notes.push(note.chars().take(STDERR_WIDTH).collect());
            }
        } else {
            keep_last(&mut self.stderr, line);
        }
    }

    /// The last lines of standard error of the running operation.
    pub(super) fn stderr(&mut self) -> Vec<String> {
        std::mem::take(&mut self.stderr)
    }
}

/// The last lines of a text, each of limited length.
pub(crate) fn last_lines(text: &str) -> Vec<String> {
    let mut lines = Vec::new();
    text.lines().for_each(|line| keep_last(&mut lines, line));
    lines
}

fn keep_last(lines: &mut Vec<String>, line: &str) {
    if line.is_empty() {
        return;
    }
    if lines.len() == STDERR_LINES {
        lines.remove(0);
    }
    lines.push(line.chars().take(STDERR_WIDTH).collect());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_printed_is_kept_exactly_and_what_is_complained_in_measure() {
        let mut reader = Reader::new("n");
        assert_eq!(reader.push("@n start 0"), Some(Signal::Started(0)));
        for line in ["first".to_owned(), "x".repeat(10 << 20), String::new()] {
            assert_eq!(reader.push(&line), None);
        }
        for line in ["@n out 0", "a\r", "@m end 0 1", ""] {
            assert_eq!(reader.push(line), None);
        }
        let Some(Signal::Ended(EndedOperation { operation: 0, code: 0, stdout, stderr, .. })) =
            reader.push("@n end 0 0")
        else {
            panic!("no end")
        };
        assert_eq!(stdout.as_deref(), Some("a\r\n@m end 0 1\n"));
        assert_eq!((stderr[0].as_str(), stderr[1].len(), stderr.len()), ("first", STDERR_WIDTH, 2));
    }

    #[test]
    fn an_operation_cannot_print_more_than_fits() {
        let mut reader = Reader::new("n");
        for (line, lines, fits) in [
            ("x".repeat(1 << 20), 3, true),
            ("x".repeat(1 << 20), 5, false),
            (String::new(), STDOUT + 2, false),
        ] {
            reader.push("@n start 0");
            reader.push("@n out 0");
            for _ in 0..lines {
                reader.push(&line);
                let kept = reader.stdout.as_ref().unwrap().text.capacity();
                assert!(kept <= 2 * STDOUT, "{kept}");
            }
            let Some(Signal::Ended(ended)) = reader.push("@n end 0 0") else { panic!("no end") };
            assert_eq!(ended.stdout.is_some(), fits, "{lines} lines of {}", line.len());
        }
    }
}
