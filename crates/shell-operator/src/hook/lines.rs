//! Logs the output of a hook, line by line.
//!
//! A line is a record of its own. If a line begins with `{`, it is collected together with the following lines until they form a
//! JSON object; its `level` and `msg` become the record's, its other keys get the prefix `hook_`.

use serde_json::{Map, Value};

use crate::log::{Fields, Level, Logger, Record};

/// Longest text of a record, in characters; longer ones are cut.
const LONGEST_TEXT: usize = 10_000;
/// Most bytes that are collected while looking for the end of a JSON object.
const LONGEST_JSON: usize = 64 * 1024;

/// Attributes that every record of a run has.
pub type Labels = Fields;

/// Turns one output stream of a run into records.
pub struct LineLog {
    logger: Logger,
    labels: Labels,
    /// A JSON object that has begun.
    json: String,
    /// Whether all JSON values are parsed; otherwise only objects.
    proxy_json: bool,
}

impl LineLog {
    /// Records with `labels` and the stream's name.
    pub fn new(logger: Logger, labels: &Labels, stream: &str, proxy_json: bool) -> Self {
        let mut labels = labels.clone();
        labels.insert("output".to_owned(), stream.into());
        Self { logger, labels, json: String::new(), proxy_json }
    }

    /// Takes the next line.
    pub fn line(&mut self, line: &str) {
        let line = line.trim_end();
        if self.json.is_empty() && !line.trim_start().starts_with('{') {
            self.plain(line.trim());
            return;
        }
        self.json.push_str(line);
        self.json.push('\n');
        match serde_json::from_str::<Map<String, Value>>(&self.json) {
            Ok(object) => {
                let length = self.json.len();
                self.json.clear();
                self.object(object, length);
            }
            // Not yet a whole object: wait for more lines, but not for ever.
            Err(error) if error.is_eof() && self.json.len() < LONGEST_JSON => {}
            Err(_) => self.flush(),
        }
    }

    /// The stream has ended: text that was collected as the beginning of JSON is logged as plain text.
    pub fn flush(&mut self) {
        for line in std::mem::take(&mut self.json).lines() {
            self.plain(line.trim());
        }
    }

    fn plain(&self, text: &str) {
        if text.is_empty() {
            return;
        }
        if self.proxy_json && serde_json::from_str::<Value>(text).is_ok() {
            self.write(
                Level::Debug,
                "json log line is not an object, it is logged as text".to_owned(),
                Fields::new(),
            );
        }
        self.write(Level::Info, truncated(text), Fields::new());
    }

    fn object(&self, mut object: Map<String, Value>, length: usize) {
        let level = object.remove("level");
        let level =
            level.as_ref().and_then(Value::as_str).and_then(|text| text.parse().ok()).unwrap_or(Level::Info);
        let message = object.remove("msg").and_then(|text| text.as_str().map(str::to_owned));
        let message = message.unwrap_or_else(|| "hook result".to_owned());
        object.remove("time");
        let mut fields = Fields::from([("proxyJsonLog".to_owned(), Value::Bool(true))]);
        if length > LONGEST_TEXT {
            let text = truncated(&Value::Object(object).to_string());
            fields.insert("hook".to_owned(), serde_json::json!({ "truncated": text }));
        } else {
            fields.extend(object.into_iter().map(|(key, value)| (format!("hook_{key}"), value)));
        }
        self.write(level, message, fields);
    }

    fn write(&self, level: Level, message: String, fields: Fields) {
        if !self.logger.enabled(level) {
            return;
        }
        let mut all = self.labels.clone();
        all.extend(fields);
        self.logger.write(&Record { level, message, fields: all });
    }
}

fn truncated(text: &str) -> String {
    match text.char_indices().nth(LONGEST_TEXT) {
        Some((end, _)) => format!("{}:truncated", &text[..end]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::sync::{Arc, Mutex};

    use super::*;
    use crate::log::Format;

    #[derive(Clone, Default)]
    struct Lines(Arc<Mutex<Vec<u8>>>);

    impl Write for Lines {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    fn log(level: Level, proxy: bool, text: &str) -> Vec<String> {
        let lines = Lines::default();
        let logger = Logger::new(Format::Json, false, level, Box::new(lines.clone()));
        let mut log = LineLog::new(logger, &Labels::from([("hook".to_owned(), "h".into())]), "stdout", proxy);
        text.split('\n').for_each(|line| log.line(line));
        log.flush();
        let bytes = lines.0.lock().unwrap().clone();
        String::from_utf8(bytes).unwrap().lines().map(str::to_owned).collect()
    }

    #[test]
    fn plain_lines_are_records_and_blank_ones_are_dropped() {
        assert_eq!(
            log(Level::Info, false, "foo\n\n  bar  \n"),
            [
                r#"{"level":"info","msg":"foo","hook":"h","output":"stdout"}"#,
                r#"{"level":"info","msg":"bar","hook":"h","output":"stdout"}"#
            ]
        );
    }

    #[test]
    fn json_objects_are_merged_also_over_several_lines() {
        let text = "{\"foo\":\"baz\"}\ntext\n{\n  \"level\": \"warn\",\n\n \"msg\": \"m\", \"time\": \"t\",\n \"a\": 1\n}";
        assert_eq!(
            log(Level::Info, false, text),
            [
                r#"{"level":"info","msg":"hook result","hook":"h","hook_foo":"baz","output":"stdout","proxyJsonLog":true}"#,
                r#"{"level":"info","msg":"text","hook":"h","output":"stdout"}"#,
                r#"{"level":"warn","msg":"m","hook":"h","hook_a":1,"output":"stdout","proxyJsonLog":true}"#
            ]
        );
    }

    #[test]
    fn what_only_looks_like_json_is_text() {
        let records = log(Level::Info, false, "{not json\n{\"open\": 1\nend");
        let texts: Vec<bool> = ["{not json", "{\\\"open\\\": 1", "end"]
            .iter()
            .map(|text| records.iter().any(|record| record.contains(text)))
            .collect();
        assert_eq!(texts, [true, true, true], "{records:?}");
    }

    #[test]
    fn arrays_are_text_with_a_note_when_json_is_proxied() {
        let records = log(Level::Debug, true, "[1]");
        assert_eq!(records.len(), 2);
        assert!(records[0].contains("\"debug\"") && records[1].contains("\"msg\":\"[1]\""));
    }

    #[test]
    fn long_lines_are_cut() {
        let text = log(Level::Info, false, &"x".repeat(1 << 20));
        assert!(text[0].len() < 11_000 && text[0].contains("x:truncated"));
        let json = log(Level::Info, false, &format!("{{\"a\":\"{}\"}}", "x".repeat(50_000)));
        assert!(json[0].contains(r#""truncated":"#) && json[0].contains(":truncated\""));
    }

    #[test]
    fn records_below_the_level_are_not_written() {
        assert_eq!(log(Level::Warn, false, "foo\n{\"level\":\"error\",\"msg\":\"m\"}").len(), 1);
    }
}
