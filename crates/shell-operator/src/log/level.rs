//! Levels by the names that the original knows.

use std::str::FromStr;

/// Importance of a record; smaller numbers are more important.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// Something failed.
    Error = 1,
    /// Something is probably wrong.
    Warn = 2,
    /// Normal operation.
    Info = 3,
    /// Why it happens.
    Debug = 4,
    /// Everything.
    Trace = 5,
}

impl Level {
    /// The name in the log.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warn => "warn",
            Self::Info => "info",
            Self::Debug => "debug",
            Self::Trace => "trace",
        }
    }

    pub(super) fn from_number(number: u8) -> Self {
        match number {
            1 => Self::Error,
            2 => Self::Warn,
            3 => Self::Info,
            4 => Self::Debug,
            _ => Self::Trace,
        }
    }
}

/// A level that does not exist.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown log level '{0}'; known are error, warn, info, debug, trace")]
pub struct LevelError(String);

impl FromStr for Level {
    type Err = LevelError;

    fn from_str(text: &str) -> Result<Self, LevelError> {
        Ok(match text.to_ascii_lowercase().as_str() {
            "fatal" | "panic" | "error" => Self::Error,
            "warn" | "warning" => Self::Warn,
            "info" => Self::Info,
            "debug" => Self::Debug,
            "trace" => Self::Trace,
            _ => return Err(LevelError(text.to_owned())),
        })
    }
}
