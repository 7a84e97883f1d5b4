//! The operator's log: JSON lines or text, with a level that can be changed while it runs.
//!
//! The operator logs through `tracing`. The output of hooks is added with [`Logger::write`], because its keys are known only at
//! run time. [`Logger`] owns the output.

mod layer;
mod level;
mod record;

use std::io::Write;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

pub use layer::LogLayer;
pub use level::{Level, LevelError};
pub use record::{Fields, Format, Record};

/// Destination and form of the log. Cheap to clone; all clones write to the same place.
#[derive(Clone)]
pub struct Logger(Arc<Inner>);

struct Inner {
    format: Format,
    with_time: bool,
    level: AtomicU8,
    out: Mutex<Box<dyn Write + Send>>,
}

impl Logger {
    /// A log that is written to `out`.
    pub fn new(format: Format, with_time: bool, level: Level, out: Box<dyn Write + Send>) -> Self {
        let level = AtomicU8::new(level as u8);
        Self(Arc::new(Inner { format, with_time, level, out: Mutex::new(out) }))
    }

    /// The least important level that is written.
    pub fn level(&self) -> Level {
        Level::from_number(self.0.level.load(Ordering::Relaxed))
    }

    /// Changes the least important level that is written.
    pub fn set_level(&self, level: Level) {
        self.0.level.store(level as u8, Ordering::Relaxed);
    }

    /// Whether `level` is written.
    pub fn enabled(&self, level: Level) -> bool {
        level as u8 <= self.0.level.load(Ordering::Relaxed)
    }

    /// Writes one record, when its level is written.
    pub fn write(&self, record: &Record) {
        if !self.enabled(record.level) {
            return;
        }
        let line = record.line(self.0.format, self.0.with_time.then(jiff::Timestamp::now));
        let mut out = self.0.out.lock().unwrap_or_else(PoisonError::into_inner);
        // A failure to write the log cannot be reported anywhere.
        let _ = out.write_all(line.as_bytes());
    }
}
