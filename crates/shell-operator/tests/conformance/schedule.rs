//! Crontabs and when they are due.

use std::collections::BTreeMap;

use jiff::{Timestamp, Zoned, tz::TimeZone};
use serde::Deserialize;
use shell_operator::schedule::{Crontab, Timer};

use crate::value::same;

/// Bindings with crontabs, and what happens as time goes by.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Timers {
    /// When the bindings are added, in order of their names.
    start: String,
    crontabs: BTreeMap<String, String>,
    steps: Vec<Step>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Step {
    /// Bindings that are removed before.
    #[serde(default)]
    remove: Vec<String>,
    at: String,
    due: Vec<String>,
}

impl Timers {
    pub(crate) fn run(&self) -> Result<(), String> {
        let mut timer = Timer::default();
        for (name, crontab) in &self.crontabs {
            let crontab = Crontab::parse(crontab).map_err(|error| error.to_string())?;
            timer.add(name.clone(), crontab, &time(&self.start)?);
        }
        for step in &self.steps {
            timer.remove(|name| step.remove.contains(name));
            same(timer.take_due(&time(&step.at)?), step.due.clone())
                .map_err(|why| format!("{}: {why}", step.at))?;
        }
        Ok(())
    }
}

fn time(text: &str) -> Result<Zoned, String> {
    let time: Timestamp = text.parse().map_err(|error| format!("{text}: {error}"))?;
    Ok(time.to_zoned(TimeZone::UTC))
}
