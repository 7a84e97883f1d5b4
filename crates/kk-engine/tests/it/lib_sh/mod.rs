//! The shell functions, run below a temporary root.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]

mod files;
mod host;
mod record;
mod system;
mod users;
