//! `settings`: how often and how long a hook may run.

use std::time::Duration;

use super::fields::Fields;
use crate::duration;

/// Limits of a hook's runs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Settings {
    /// Shortest time between runs on average; zero for no limit.
    pub execution_min_interval: Duration,
    /// Runs that may follow each other without that time between them; at least 1.
    pub execution_burst: u32,
    /// Time after which a run is ended; `None` for no limit. Not known to the original.
    pub execution_timeout: Option<Duration>,
}

pub(super) fn read(fields: &Fields) -> Settings {
    let path = fields.path("settings");
    let Some(value) = fields.get("settings") else { return Settings::default() };
    let Some(settings) = Fields::new(&path, value, fields.problems) else { return Settings::default() };
    settings.only(&["executionMinInterval", "executionBurst", "executionTimeout"]);
    if settings.is_empty() {
        fields.error("settings", "must name executionMinInterval, executionBurst or executionTimeout");
    }
    Settings {
        execution_min_interval: read_duration(&settings, "executionMinInterval").unwrap_or_default(),
        execution_burst: read_burst(&settings),
        execution_timeout: read_duration(&settings, "executionTimeout").filter(|timeout| !timeout.is_zero()),
    }
}

fn read_duration(settings: &Fields, key: &str) -> Option<Duration> {
    let text = settings.string(key)?;
    let duration = duration::parse(text);
    if duration.is_none() {
        settings.error(key, format!("'{text}' is not a duration like '30s' or '1m30s'"));
    }
    duration
}

fn read_burst(settings: &Fields) -> u32 {
    let Some(burst) = settings.integer("executionBurst") else { return 1 };
    let Ok(burst) = u32::try_from(burst) else {
        settings.error("executionBurst", format!("{burst} is not a number of runs"));
        return 1;
    };
    burst.max(1)
}
