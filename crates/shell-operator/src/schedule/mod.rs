//! Runs by the clock: [`Crontab`] computes the times, [`Timer`] wakes up at these times.

mod crontab;
mod timer;

pub use crontab::{Crontab, CrontabError};
pub use timer::Timer;
