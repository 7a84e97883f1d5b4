//! The start of a call: the command line for the host's shell, and the bytes for its standard input.
//!
//! The command line contains no input of the user and no secret. It reads the bootstrap (`bootstrap.sh`) from its input, and the
//! bootstrap reads a tar stream with the script and its files. If the input ends too early, nothing runs: the bootstrap is one
//! compound command, and the script is the last file in the tar.

use kk_config::Secret;

use super::{Call, Root, Side};
use crate::{Error, Payload, nonce, quote};

const BOOTSTRAP: &str = include_str!("bootstrap.sh");

/// All parts of a call that are known before the first byte is sent.
pub(crate) struct Opening {
    /// For `ssh host COMMAND` or `sh -c COMMAND`; any usual login shell understands it (csh and fish too).
    pub(crate) command: String,
    /// The random word of this call.
    pub(crate) nonce: String,
    /// Whether sudo requires a terminal.
    pub(crate) pty: bool,
    /// Whether the user becomes root by sudo, which may refuse.
    pub(crate) sudo: bool,
    /// For sudo, on its standard input.
    pub(crate) password: Option<Secret>,
    /// The first input of the command: bootstrap and tar.
    pub(crate) prelude: Vec<u8>,
}

impl Opening {
    /// Prepares a call. `lost` are the random words of calls that may still run on the host.
    pub(crate) fn new(root: &Root, call: &Call, lost: &[String]) -> Result<Self, Error> {
        let nonce = nonce();
        let tar = pack(call)?;
        let mode = if matches!(call.side, Side::Body(_)) { "stream" } else { "run" };
        let pty = matches!(root, Root::Sudo { pty: true, .. });
        let bootstrap = format!(
            "{{\nkk={nonce} size={} mode={mode} pty={} lost='{}'\n{BOOTSTRAP}}}\n",
            tar.len(),
            u8::from(pty),
            lost.join(" ")
        );

        // The first loop skips a password that sudo did not ask for. The second loop reads the bootstrap with `read`, the only
        // reader that certainly consumes no byte after the last line. The bootstrap contains no backslash, which `echo` would
        // change.
        let ready = if pty { format!("stty raw -echo; echo kk-{nonce}-ready; ") } else { String::new() };
        let inner = format!(
            "{ready}while read -r l; do [ \"$l\" = kk-{nonce} ] && break; done; \
             eval \"$(while IFS= read -r l && [ \"$l\" != kk-{nonce} ]; do echo \"$l\"; done)\""
        );
        let inner = format!("sh -c {}", quote(&inner));
        let (command, password) = match root {
            Root::Already => (format!("exec {inner}"), None),
            Root::Sudo { password: None, .. } => (format!("exec env LC_ALL=C sudo -k -n {inner}"), None),
            Root::Sudo { password: Some(password), pty: false } => {
                (format!("exec env LC_ALL=C sudo -k -S -p \"\" {inner}"), Some(password.clone()))
            }
            Root::Sudo { password: Some(password), pty: true } => (
                format!("exec env LC_ALL=C sudo -k -S -p {} {inner}", prompt(&nonce)),
                Some(password.clone()),
            ),
        };
        let command = if pty {
            format!("exec sh -c {}", quote(&format!("stty raw -echo; {command}")))
        } else {
            command
        };

        let mut prelude = format!("kk-{nonce}\n{bootstrap}kk-{nonce}\n").into_bytes();
        prelude.extend_from_slice(&tar);
        Ok(Self { command, nonce, pty, sudo: !matches!(root, Root::Already), password, prelude })
    }

    /// sudo's prompt for the password on a terminal.
    pub(crate) fn prompt(&self) -> String {
        prompt(&self.nonce)
    }

    /// The line that the shell prints on a terminal once the terminal is transparent.
    pub(crate) fn ready(&self) -> String {
        format!("kk-{}-ready\n", self.nonce)
    }

    /// The text that the bootstrap prints before the name of a missing binary.
    pub(crate) fn missing(&self) -> String {
        format!("kk-{}-missing ", self.nonce)
    }

    /// The text that the bootstrap prints if the host cannot store the script.
    pub(crate) fn failed(&self) -> String {
        format!("kk-{}-failed", self.nonce)
    }
}

fn prompt(nonce: &str) -> String {
    format!("kk-{nonce}-password:")
}

/// The files and the script as a tar stream: `files/…`, `script`.
fn pack(call: &Call) -> Result<Vec<u8>, Error> {
    let mut tar = tar::Builder::new(Vec::new());
    let mut directory = tar::Header::new_gnu();
    directory.set_entry_type(tar::EntryType::Directory);
    directory.set_mode(0o700);
    directory.set_size(0);
    let failed = |name: &str, error: std::io::Error| bad_name(name, &error.to_string());
    tar.append_data(&mut directory, "files/", std::io::empty()).map_err(|error| failed("files", error))?;
    for Payload { name, content } in &call.files {
        if name.is_empty() || name.contains(['/', '\0']) || name == "." || name == ".." {
            return Err(bad_name(name, "not a plain file name"));
        }
        tar.append_data(&mut header(content.len()), format!("files/{name}"), &content[..])
            .map_err(|error| failed(name, error))?;
    }
    tar.append_data(&mut header(call.script.len()), "script", call.script.as_bytes())
        .and_then(|()| tar.into_inner())
        .map_err(|error| failed("script", error))
}

fn header(size: usize) -> tar::Header {
    let mut header = tar::Header::new_gnu();
    header.set_mode(0o600);
    header.set_size(size as u64);
    header
}

fn bad_name(name: &str, reason: &str) -> Error {
    Error::Read { host: "this machine".into(), path: name.into(), reason: reason.into() }
}
