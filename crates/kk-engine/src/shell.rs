//! The shell functions that every script finds.

/// Functions for the scripts that change a host.
pub(crate) const LIB: &str = include_str!("lib.sh");

/// Begins every script that uses them: what they read from the environment is for tests, and a host's own must not
/// reach them.
pub(crate) const RESET: &str = "unset KK_ROOT KK_STATE_READY\n";
