//! The shell functions that every script finds.

/// Functions for the scripts that change a host.
pub(crate) const LIB: &str = include_str!("lib.sh");
