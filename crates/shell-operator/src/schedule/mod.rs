//! Runs by the clock: [`Crontab`] says when, [`Timer`] wakes up then.

mod crontab;
mod timer;

pub use crontab::{Crontab, CrontabError};
pub use timer::Timer;
