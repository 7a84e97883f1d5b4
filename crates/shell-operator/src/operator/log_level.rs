//! The log level as a parameter that can be changed for a while.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::log::{Level, Logger};

/// How long `debug` lasts when no time is given, because users forget to switch it off.
const DEBUG_TIME: Duration = Duration::from_mins(30);

/// The parameter `log.level`. Cheap to clone; all clones are the same parameter.
#[derive(Clone)]
pub(super) struct LogLevel {
    logger: Logger,
    default: Level,
    change: Arc<Mutex<Change>>,
}

#[derive(Default)]
struct Change {
    /// Counts changes: an expiry belongs to one of them.
    number: u64,
    expires: Option<Timestamp>,
}

impl LogLevel {
    /// The parameter of `logger`, whose level now is the default.
    pub(super) fn new(logger: Logger) -> Self {
        Self { default: logger.level(), logger, change: Arc::default() }
    }

    /// Sets the level, for some time or until the next change. Needs a runtime.
    pub(super) fn set(&self, level: Level, time: Option<Duration>) {
        let time = time.or((level >= Level::Debug).then_some(DEBUG_TIME));
        self.logger.set_level(level);
        let number = {
            let mut change = self.change.lock().unwrap_or_else(PoisonError::into_inner);
            change.number += 1;
            change.expires = time.and_then(|time| Timestamp::now().checked_add(time).ok());
            change.number
        };
        if let Some(time) = time {
            let parameter = self.clone();
            tokio::spawn(async move {
                tokio::time::sleep(time).await;
                parameter.expire(number);
            });
        }
    }

    fn expire(&self, number: u64) {
        let mut change = self.change.lock().unwrap_or_else(PoisonError::into_inner);
        if change.number == number {
            change.expires = None;
            self.logger.set_level(self.default);
        }
    }

    /// The parameter as `config list` shows it.
    pub(super) fn describe(&self) -> Value {
        let change = self.change.lock().unwrap_or_else(PoisonError::into_inner);
        let mut value = json!({
            "default": self.default.as_str(),
            "description": "Global log level. Default duration for debug level is 30m",
            "name": "log.level",
            "value": self.logger.level().as_str(),
        });
        if let Some(expires) = change.expires {
            value["expireAt"] = expires.to_string().into();
        }
        value
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::Format;

    #[tokio::test(start_paused = true)]
    async fn a_change_for_a_while_ends_unless_another_came() {
        let logger = Logger::new(Format::Json, false, Level::Info, Box::new(std::io::sink()));
        let parameter = LogLevel::new(logger.clone());
        parameter.set(Level::Debug, None);
        assert!(parameter.describe()["expireAt"].is_string());
        tokio::time::sleep(Duration::from_mins(29)).await;
        assert_eq!(logger.level(), Level::Debug);
        tokio::time::sleep(Duration::from_mins(2)).await;
        assert_eq!(logger.level(), Level::Info);
        parameter.set(Level::Error, Some(Duration::from_secs(10)));
        parameter.set(Level::Warn, None);
        tokio::time::sleep(Duration::from_mins(1)).await;
        assert_eq!(logger.level(), Level::Warn);
    }
}
