//! Builds error messages for the connection to a host.

use ssh2::ErrorCode;

use super::config::SshConfig;
use crate::Error;

/// libssh2's `LIBSSH2_ERROR_TIMEOUT` and `LIBSSH2_ERROR_SOCKET_TIMEOUT`.
const TIMED_OUT: [i32; 2] = [-9, -30];

/// The host could not be reached.
pub(super) fn unreachable(config: &SshConfig, reason: &str) -> Error {
    Error::Unreachable { address: config.place(), reason: reason.to_owned() }
}

/// The message for an error of libssh2.
pub(super) fn words(config: &SshConfig, error: &ssh2::Error) -> String {
    if is_one_of(error, &TIMED_OUT) { no_answer(config) } else { error.message().to_owned() }
}

/// Whether an error has one of these numbers of libssh2.
pub(super) fn is_one_of(error: &ssh2::Error, codes: &[i32]) -> bool {
    matches!(error.code(), ErrorCode::Session(code) if codes.contains(&code))
}

/// The host did not answer in time.
pub(super) fn no_answer(config: &SshConfig) -> String {
    format!("no answer within {} s", config.timeout.as_secs_f32())
}
