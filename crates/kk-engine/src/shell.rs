//! The shell functions that every script finds.

/// Functions for the scripts that change a host.
pub(crate) const LIB: &str = include_str!("lib.sh");

/// A script of one operation, complete.
pub(crate) fn with_lib(text: &str) -> String {
    format!("{LIB}\nset -e\n{text}")
}
