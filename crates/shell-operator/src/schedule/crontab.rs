//! Crontab lines as robfig/cron v2 reads them, which the original uses.
//!
//! Five fields start with the minute, six with the second. `@every DURATION` counts from the start of the operator, whole seconds
//! at least. Syntax that robfig does not know (`L`, `W`, `#`, years) is refused, so that a hook does not work here and fail
//! there.

use std::time::Duration;

use croner::Cron;
use croner::parser::{CronParser, Seconds, Year};
use jiff::Zoned;
use jiff::tz::TimeZone;

use crate::duration;

/// A parsed crontab line.
#[derive(Clone, Debug)]
pub struct Crontab {
    text: String,
    zone: Option<TimeZone>,
    rule: Rule,
}

#[derive(Clone, Debug)]
enum Rule {
    Fields(Box<Cron>),
    Every(Duration),
}

/// Why a text is not a crontab line.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("'{text}' is not a crontab: {why}")]
pub struct CrontabError {
    text: String,
    why: String,
}

impl Crontab {
    /// Parses `text`.
    pub fn parse(text: &str) -> Result<Self, CrontabError> {
        let fail = |why: String| CrontabError { text: text.to_owned(), why };
        let (zone, line) = split_zone(text.trim()).map_err(fail)?;
        let rule = if let Some(period) = line.strip_prefix("@every ") {
            let period = duration::parse(period.trim())
                .ok_or_else(|| fail("@every needs a duration, like '@every 1h30m'".to_owned()))?;
            Rule::Every(whole_seconds(period))
        } else {
            let fields = shorthand(line).unwrap_or(line);
            check_fields(fields).map_err(fail)?;
            let parser = CronParser::builder()
                .seconds(Seconds::Optional)
                .year(Year::Disallowed)
                .dom_and_dow(has_open_day(fields))
                .build();
            let cron = parser.parse(&clean(fields)).map_err(|error| fail(error.to_string()))?;
            Rule::Fields(Box::new(cron))
        };
        Ok(Self { text: text.to_owned(), zone, rule })
    }

    /// The text it was parsed from.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The first time after `now`. `None` if no such time exists, as for the 31st of February.
    pub fn next(&self, now: &Zoned) -> Option<Zoned> {
        match &self.rule {
            Rule::Every(period) => {
                let next = now.checked_add(*period).ok()?;
                // On whole seconds, as the original rounds.
                next.with().subsec_nanosecond(0).build().ok()
            }
            Rule::Fields(cron) => {
                let now =
                    self.zone.as_ref().map_or_else(|| now.clone(), |zone| now.with_time_zone(zone.clone()));
                cron.find_next_occurrence(&now, false).ok()
            }
        }
    }
}

impl PartialEq for Crontab {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

/// The `TZ=Europe/Berlin` in front of a line.
fn split_zone(text: &str) -> Result<(Option<TimeZone>, &str), String> {
    let Some(rest) = text.strip_prefix("TZ=") else { return Ok((None, text)) };
    let (name, line) = rest.split_once(' ').ok_or("there is nothing after the time zone")?;
    let zone = TimeZone::get(name).map_err(|_| format!("the time zone '{name}' is unknown"))?;
    Ok((Some(zone), line.trim()))
}

fn shorthand(line: &str) -> Option<&'static str> {
    Some(match line {
        "@yearly" | "@annually" => "0 0 0 1 1 *",
        "@monthly" => "0 0 0 1 * *",
        "@weekly" => "0 0 0 * * 0",
        "@daily" | "@midnight" => "0 0 0 * * *",
        "@hourly" => "0 0 * * * *",
        _ => return None,
    })
}

const MONTHS: [&str; 12] =
    ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
const DAYS: [&str; 7] = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"];

/// Refuses what croner knows and robfig/cron does not.
fn check_fields(line: &str) -> Result<(), String> {
    if line.starts_with('@') {
        return Err("known are @yearly, @monthly, @weekly, @daily, @hourly and @every DURATION".to_owned());
    }
    let fields: Vec<&str> = line.split_whitespace().collect();
    if !(5..=6).contains(&fields.len()) {
        return Err(format!("it has {} fields; 5 or 6 are needed", fields.len()));
    }
    for field in &fields {
        if let Some(bad) = field.chars().find(|c| !c.is_ascii_alphanumeric() && !"*/,-?".contains(*c)) {
            return Err(format!("'{bad}' is not supported in '{field}'"));
        }
    }
    let days = fields.last().into_iter().flat_map(|field| field.split(','));
    let mut numbers = days.flat_map(|part| part.split('/').next().unwrap_or_default().split('-'));
    if numbers.any(|number| number.parse() == Ok(7)) {
        return Err("days of the week are 0 (Sunday) to 6, or sun to sat; 7 is not supported".to_owned());
    }
    for (position, field) in fields.iter().enumerate() {
        let allowed: &[&str] = match fields.len() - position {
            2 => &MONTHS,
            1 => &DAYS,
            _ => &[],
        };
        for word in field.split(|c: char| !c.is_ascii_alphabetic()).filter(|word| !word.is_empty()) {
            if !allowed.contains(&word.to_ascii_lowercase().as_str()) {
                return Err(format!("'{word}' is not supported in '{field}'"));
            }
        }
    }
    Ok(())
}

/// Whether the day of the month or of the week begins with a star: then a day must match both fields, otherwise one of them.
fn has_open_day(line: &str) -> bool {
    let fields: Vec<&str> = line.split_whitespace().rev().collect();
    // From the end: day of the week, month, day of the month. robfig checks each part of a list.
    let open = |field: &&str| field.split(',').any(|part| part.starts_with(['*', '?']));
    [0, 2].into_iter().filter_map(|position| fields.get(position)).any(open)
}

/// `?` is `*` to robfig in every field; `5/10` is `5-MAX/10`, which croner spells out only when allowed to.
fn clean(line: &str) -> String {
    let fields: Vec<&str> = line.split_whitespace().collect();
    let limits: &[u32] = if fields.len() == 6 { &[59, 59, 23, 31, 12, 6] } else { &[59, 23, 31, 12, 6] };
    let clean_part = |part: &str, limit: u32| match part.split_once('/') {
        Some((start, step)) if start.chars().all(|c| c.is_ascii_digit()) && !start.is_empty() => {
            format!("{start}-{limit}/{step}")
        }
        _ => part.replace('?', "*"),
    };
    let clean_field = |field: &str, limit: u32| {
        field.split(',').map(|part| clean_part(part, limit)).collect::<Vec<_>>().join(",")
    };
    fields.iter().zip(limits).map(|(field, limit)| clean_field(field, *limit)).collect::<Vec<_>>().join(" ")
}

fn whole_seconds(period: Duration) -> Duration {
    Duration::from_secs(period.as_secs().max(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn next_time() {
        for (case, crontab, now, expected) in [
            ("minute", "*/5 * * * *", "2026-03-01T10:02:30Z", "2026-03-01T10:05:00Z"),
            ("second", "*/10 * * * * *", "2026-03-01T10:02:31Z", "2026-03-01T10:02:40Z"),
            ("question", "0 6 * * ?", "2026-03-01T10:00:00Z", "2026-03-02T06:00:00Z"),
            ("names", "0 6 * JAN-MAR MON", "2026-03-31T10:00:00Z", "2027-01-04T06:00:00Z"),
            ("start_and_step", "5/20 * * * *", "2026-03-01T10:06:00Z", "2026-03-01T10:25:00Z"),
            ("day_of_month_or_week", "0 0 13 * FRI", "2026-03-01T00:00:00Z", "2026-03-06T00:00:00Z"),
            ("every_other_day_if_a_weekday", "0 6 */2 * 1-5", "2026-03-05T10:00:00Z", "2026-03-09T06:00:00Z"),
            ("monday_if_even", "0 6 2-30/2 * */7", "2026-03-01T10:00:00Z", "2026-03-08T06:00:00Z"),
            ("daily", "@daily", "2026-03-01T10:00:00Z", "2026-03-02T00:00:00Z"),
            ("every", "@every 1h30m", "2026-03-01T10:00:00.7Z", "2026-03-01T11:30:00Z"),
            ("every_short", "@every 0.1s", "2026-03-01T10:00:00.7Z", "2026-03-01T10:00:01Z"),
            ("zone", "TZ=Asia/Tokyo 0 6 * * *", "2026-03-01T10:00:00Z", "2026-03-01T21:00:00Z"),
        ] {
            println!("case {case}");
            let at = |text: &str| text.parse::<jiff::Timestamp>().unwrap();
            let next = Crontab::parse(crontab).unwrap().next(&at(now).to_zoned(TimeZone::UTC)).unwrap();
            assert_eq!(next.timestamp(), at(expected), "{case}");
        }
    }

    #[test]
    fn an_hour_that_the_clock_skips_is_not_lost() {
        let now: Zoned = "2026-03-28T12:00:00[Europe/Berlin]".parse().unwrap();
        let next = Crontab::parse("30 2 * * *").unwrap().next(&now).unwrap();
        assert_eq!(next.timestamp().to_string(), "2026-03-29T01:00:00Z", "02:30 does not exist on that day");
    }

    #[test]
    fn bad_lines() {
        for crontab in [
            "x * * * *",
            "* * * *",
            "* * * * * * *",
            "CRON_TZ=Asia/Tokyo 0 6 * * ?",
            "TZ=Nowhere/Land 0 6 * * *",
            "0 6 * JAN-MAR MON#1",
            "0 6 L * *",
            "0 6 15W * *",
            "0 6 * * 5L",
            "61 * * * *",
            "* * * * 7",
            "* * * * 5-7",
            "@every",
            "@every often",
            "@never",
            "",
        ] {
            assert!(Crontab::parse(crontab).is_err(), "{crontab}");
        }
    }
}
