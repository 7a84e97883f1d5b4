//! The SSH connection against a real sshd on loopback.

#![expect(clippy::unwrap_used, reason = "a test ends at the first thing that is wrong")]

mod connect;
mod host_keys;
mod hostile;
mod proxy;
mod run;
mod silence;
mod sshd;
mod transfer;

use kk_connector::Command;

/// A script with a time limit of 20 s.
fn script(text: &str) -> Command {
    Command { timeout: std::time::Duration::from_secs(20), ..Command::new(text) }
}
