//! Several operations in one round trip: the script that drives them on the host, and what it says.
//!
//! Each operation runs in a `sh` of its own, in a directory with its files. The driver's standard output is the
//! wire: lines that begin with `@NONCE` frame the operations, and all others are what an operation writes to
//! standard error, live. What an operation prints is thrown away, or, when somebody wants it, goes to a file and comes
//! after its end.

use std::fmt::Write as _;

use kk_connector::{Payload, nonce, quote};

use crate::{Script, shell};

/// How many lines of standard error a failure shows.
const STDERR_LINES: usize = 20;
/// How much of a line it shows, in characters.
const STDERR_WIDTH: usize = 2000;

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
        // The directory lets the engine put a file "stop" there: nothing new begins then, and a wait ends with 75.
        let mut driver = format!(
            "{}kk_say() {{ printf '\\n@{nonce} %s\\n' \"$*\"; }}\n\
             kk_operation() {{\n\
             [ ! -e stop ] || {{ kk_say stopped; exit 0; }}\n\
             kk_say start \"$1\"\n\
             ( cd \"$1.d\" && exec sh -e \"../$1.sh\" ) >\"$2\" 2>&4 </dev/null\n\
             kk_code=$?\n\
             [ $kk_code -ne 75 ] || [ ! -e stop ] || {{ kk_say stopped; exit 0; }}\n\
             [ $kk_code -ne 0 ] || [ ! -f \"$2\" ] || {{ kk_say out \"$1\"; cat \"$2\"; }}\n\
             rm -rf \"$1.d\"\n\
             kk_say end \"$1\" $kk_code\n\
             [ $kk_code -eq 0 ] || exit 0\n\
             }}\n\
             exec 4>&1\n\
             kk_say dir \"$PWD\"\n",
            shell::RESET
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
                if script.output.is_some() { "out" } else { "/dev/null" }
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
        let Some(Signal::Ended { operation: 0, code: 0, stdout, stderr }) = reader.push("@n end 0 0") else {
            panic!("no end")
        };
        assert_eq!(stdout, "a\r\n@m end 0 1\n");
        assert_eq!((stderr[0].as_str(), stderr[1].len(), stderr.len()), ("first", STDERR_WIDTH, 2));
    }
}
