//! The shell functions that are available to every script.

/// Functions for the scripts that change a host.
pub const LIB: &str = include_str!("lib.sh");

/// The functions `kk_lock` and `kk_unlock`, for jobs on a host that must not run while kk works there.
pub const HOST_LOCK: &str = include_str!("runner/host_lock.sh");

/// The first line of every script that uses these functions. The environment variables that they read are for tests only, and
/// variables set on a host must not reach them.
pub(crate) const RESET: &str = "unset KK_ROOT KK_STATE_READY\n";
