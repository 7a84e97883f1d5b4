//! The command line of `kk`: arguments, one file per command, the printer and the exit codes.
//!
//! It is a library only so that tests and examples can use the printer; no other crate depends on it.

#![expect(
    clippy::format_push_string,
    clippy::format_collect,
    reason = "texts of a screen or two: plain words count more than an allocation"
)]

pub mod args;
mod cancel;
mod commands;
pub mod error;
pub mod exit;
pub mod printer;

pub use commands::run;
