//! One line of the log.

use std::collections::BTreeMap;
use std::fmt::Write;

use jiff::Timestamp;
use serde_json::Value;

use super::Level;

/// Attributes of a record, sorted by name.
pub type Fields = BTreeMap<String, Value>;

/// Form of the lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// `{"level":…,"msg":…,…,"time":…}`
    Json,
    /// `time=… level=… msg=… key=value`
    Text,
}

/// An entry of the log.
#[derive(Clone, Debug, PartialEq)]
pub struct Record {
    /// How important it is.
    pub level: Level,
    /// The message.
    pub message: String,
    /// More about it.
    pub fields: Fields,
}

impl Record {
    /// The record as a line with its newline.
    pub(super) fn line(&self, format: Format, time: Option<Timestamp>) -> String {
        let time = time.map(|time| time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string());
        match format {
            Format::Json => self.json(time),
            Format::Text => self.text(time),
        }
    }

    fn json(&self, time: Option<String>) -> String {
        let mut map = serde_json::Map::new();
        map.insert("level".to_owned(), self.level.as_str().into());
        map.insert("msg".to_owned(), self.message.as_str().into());
        map.extend(self.fields.iter().map(|(key, value)| (key.clone(), value.clone())));
        map.extend(time.map(|time| ("time".to_owned(), time.into())));
        format!("{}\n", Value::Object(map))
    }

    fn text(&self, time: Option<String>) -> String {
        let mut line = String::new();
        if let Some(time) = time {
            let _ = write!(line, "time={time} ");
        }
        let _ = write!(line, "level={} msg={}", self.level.as_str(), quoted(&self.message));
        for (key, value) in &self.fields {
            let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            let _ = write!(line, " {key}={}", quoted(&text));
        }
        line.push('\n');
        line
    }
}

/// `text` as one value: quoted when it has anything but plain characters.
fn quoted(text: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || "-._/@^+:".contains(c);
    if !text.is_empty() && text.chars().all(plain) { text.to_owned() } else { format!("{text:?}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record() -> Record {
        let fields = [("hook", Value::from("a b")), ("count", Value::from(3))];
        let fields = fields.map(|(key, value)| (key.to_owned(), value)).into();
        Record { level: Level::Info, message: "Execute hook".to_owned(), fields }
    }

    #[test]
    fn json_lines_begin_with_level_and_message_and_end_with_the_time() {
        assert_eq!(
            record().line(Format::Json, Some(Timestamp::UNIX_EPOCH)),
            "{\"level\":\"info\",\"msg\":\"Execute hook\",\"count\":3,\"hook\":\"a b\",\"time\":\"1970-01-01T00:00:00Z\"}\n"
        );
    }

    #[test]
    fn text_lines_quote_what_is_not_one_word() {
        assert_eq!(
            record().line(Format::Text, None),
            "level=info msg=\"Execute hook\" count=3 hook=\"a b\"\n"
        );
    }
}
