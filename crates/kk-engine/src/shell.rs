//! The shell functions that every script finds.

/// Functions for the scripts that change a host.
pub const LIB: &str = include_str!("lib.sh");

/// The functions `kk_lock` and `kk_unlock`, for programs on a host that must not work while kk does.
pub const HOST_LOCK: &str = include_str!("runner/host_lock.sh");

/// Begins every script that uses them: what they read from the environment is for tests, and a host's own must not
/// reach them.
pub(crate) const RESET: &str = "unset KK_ROOT KK_STATE_READY\n";
