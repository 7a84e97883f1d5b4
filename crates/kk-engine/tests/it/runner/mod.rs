//! Runs on hosts that execute their scripts with a real shell.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]

mod batches;
mod code;
mod failures;
mod hostile;
mod lanes;
mod lock;
mod random;
mod stops;
mod support;
mod turns;
