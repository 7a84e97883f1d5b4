//! Several operations in one round trip: the script that drives them on the host, and what it says.
//!
//! Each operation runs in a `sh` of its own, in a directory with its files. The driver's standard output is the
//! wire: lines that begin with `@NONCE` frame the operations, and all others are what an operation writes to
//! standard error, live. What an operation prints goes to a file and comes after its end, when somebody wants it.

use std::fmt::Write as _;

use kk_connector::{Payload, quote};

use crate::{Script, probe::nonce, shell};

/// How many lines of standard error a failure shows.
const STDERR_LINES: usize = 20;

/// The driver's text and all files of a batch.
pub(super) struct Batch {
    pub(super) script: String,
    pub(super) files: Vec<Payload>,
    pub(super) nonce: String,
}

impl Batch {
    /// Compiles operations, to be run in this order until one fails.
    pub(super) fn new<'a>(scripts: impl IntoIterator<Item = &'a Script>) -> Self {
        let nonce = nonce();
        let mut files = vec![payload("lib.sh".into(), shell::LIB)];
        // The directory lets the engine put a file "stop" there: nothing new begins then.
        let mut driver = format!(
            "kk_say() {{ printf '\\n@{nonce} %s\\n' \"$*\"; }}\n\
             kk_operation() {{\n\
             [ ! -e stop ] || {{ kk_say stopped; exit 0; }}\n\
             kk_say start \"$1\"\n\
             ( cd \"$1.d\" && exec sh -e \"../$1.sh\" ) >\"$1.out\" 2>&4 </dev/null\n\
             kk_code=$?\n\
             [ $kk_code -ne 0 ] || [ \"$2\" = quiet ] || {{ kk_say out \"$1\"; cat \"$1.out\"; }}\n\
             rm -rf \"$1.d\" \"$1.out\"\n\
             kk_say end \"$1\" $kk_code\n\
             [ $kk_code -eq 0 ] || exit 0\n\
             }}\n\
             exec 4>&1\n\
             kk_say dir \"$PWD\"\n"
        );
        for (number, script) in scripts.into_iter().enumerate() {
            files.push(payload(format!("{number}.sh"), &format!(". ../lib.sh\n{}", script.text)));
            let _ = writeln!(driver, "mkdir {number}.d");
            for file in &script.files {
                let name = format!("{number}.{}", file.name);
                let _ = writeln!(
                    driver,
                    "mv {} {}",
                    quote(&format!("./{name}")),
                    quote(&format!("{number}.d/{}", file.name))
                );
                files.push(Payload { name, content: file.content.clone() });
            }
            let _ = writeln!(
                driver,
                "kk_operation {number} {}",
                if script.output.is_some() { "out" } else { "quiet" }
            );
        }
        Self { script: driver, files, nonce }
    }
}

fn payload(name: String, text: &str) -> Payload {
    Payload { name, content: text.as_bytes().into() }
}

/// Something that the driver said.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Signal {
    /// Where the batch runs on the host.
    Directory(String),
    /// An operation begins.
    Started(usize),
    /// An operation has ended.
    Ended { operation: usize, code: i32, stdout: String, stderr: Vec<String> },
}

/// Reads the driver's lines.
pub(super) struct Reader {
    mark: String,
    /// Lines of what the running operation printed, once it has ended.
    stdout: Option<Vec<String>>,
    /// Last lines of standard error of the running operation.
    stderr: Vec<String>,
}

impl Reader {
    pub(super) fn new(nonce: &str) -> Self {
        Self { mark: format!("@{nonce} "), stdout: None, stderr: Vec::new() }
    }

    /// Takes the next line.
    pub(super) fn push(&mut self, line: &str) -> Option<Signal> {
        let line = line.trim_end_matches('\r');
        let Some(words) = line.strip_prefix(&self.mark) else {
            match &mut self.stdout {
                Some(stdout) => stdout.push(line.to_owned()),
                None => keep_last(&mut self.stderr, line),
            }
            return None;
        };
        let (kind, rest) = words.split_once(' ').unwrap_or((words, ""));
        match kind {
            "dir" => Some(Signal::Directory(rest.to_owned())),
            "start" => {
                self.stderr.clear();
                Some(Signal::Started(rest.parse().ok()?))
            }
            "out" => {
                self.stdout = Some(Vec::new());
                None
            }
            "end" => {
                let (operation, code) = rest.split_once(' ')?;
                // Exact: the driver's own newline before its mark ends the last line, or follows an empty one.
                let stdout = self.stdout.take().unwrap_or_default().join("\n");
                let (operation, code) = (operation.parse().ok()?, code.parse().ok()?);
                Some(Signal::Ended { operation, code, stdout, stderr: self.stderr() })
            }
            _ => None,
        }
    }

    /// The last lines of standard error of the running operation.
    pub(super) fn stderr(&mut self) -> Vec<String> {
        std::mem::take(&mut self.stderr)
    }
}

fn keep_last(lines: &mut Vec<String>, line: &str) {
    if line.is_empty() {
        return;
    }
    if lines.len() == STDERR_LINES {
        lines.remove(0);
    }
    lines.push(line.to_owned());
}
