//! What a run does on hosts that really run their scripts.

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
