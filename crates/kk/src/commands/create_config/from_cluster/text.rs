//! The text of a Cluster file with comments, line by line.

use std::{collections::BTreeMap, fmt::Write as _, net::Ipv4Addr};

use kk_config::{ConfigErrors, Overrides, load};

/// Longest line of a comment, in characters.
const WIDTH: usize = 100;

/// The lines of the file.
#[derive(Default)]
pub(super) struct Text {
    lines: Vec<Line>,
}

struct Line {
    depth: usize,
    text: String,
    /// If kk refuses the line, it becomes a comment.
    optional: bool,
}

impl Text {
    pub(super) fn line(&mut self, depth: usize, text: impl Into<String>) {
        self.lines.push(Line { depth, text: text.into(), optional: false });
    }

    /// A line that the file can also do without: a comment with the reason replaces it if kk refuses it.
    pub(super) fn optional(&mut self, depth: usize, text: impl Into<String>) {
        self.lines.push(Line { depth, text: text.into(), optional: true });
    }

    /// A comment. Long ones get several lines.
    pub(super) fn note(&mut self, depth: usize, text: &str) {
        self.lines.extend(comment(depth, text));
    }

    /// A key with the lines that `write` adds below it, or only its comments if there are no others.
    pub(super) fn section(&mut self, depth: usize, key: &str, write: impl FnOnce(&mut Self, usize)) {
        let mut body = Self::default();
        write(&mut body, depth + 1);
        if body.lines.iter().any(|line| !line.text.starts_with('#')) {
            self.line(depth, format!("{key}:"));
        } else {
            body.lines.iter_mut().for_each(|line| line.depth = depth);
        }
        self.lines.append(&mut body.lines);
    }

    /// A list of texts, if it has any.
    pub(super) fn list<'a>(&mut self, depth: usize, key: &str, items: impl IntoIterator<Item = &'a str>) {
        self.section(depth, key, |text, depth| {
            for item in items {
                text.optional(depth, format!("- {}", scalar(item)));
            }
        });
    }

    /// The file, which kk can load.
    ///
    /// # Errors
    /// kk refuses lines that the file needs.
    pub(super) fn finish(mut self) -> Result<String, ConfigErrors> {
        loop {
            let text = self.to_string();
            let Err(errors) = load("the cluster", &text, &Overrides::default()) else { return Ok(text) };
            let mut refused = BTreeMap::new();
            for error in &errors.errors {
                let Some(at) = error.place.as_ref().map(|place| place.line - 1) else { continue };
                if self.lines.get(at).is_some_and(|line| line.optional) {
                    refused.insert(at, error.message.clone());
                }
            }
            if refused.is_empty() {
                return Err(errors);
            }
            for (at, message) in refused.into_iter().rev() {
                let Line { depth, text, .. } = &self.lines[at];
                let reason = comment(*depth, &format!("Left out: {message}"));
                let dropped = comment(*depth, text);
                self.lines.splice(at..=at, reason.into_iter().chain(dropped));
            }
        }
    }
}

impl std::fmt::Display for Text {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for Line { depth, text, .. } in &self.lines {
            writeln!(f, "{:1$}{text}", "", depth * 2)?;
        }
        Ok(())
    }
}

/// The lines of a comment. The text may contain words of the cluster.
fn comment(depth: usize, text: &str) -> Vec<Line> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        let word = word.replace(char::is_control, "?");
        match lines.last_mut() {
            Some(line) if depth * 2 + line.chars().count() + 1 + word.chars().count() <= WIDTH => {
                *line += " ";
                *line += &word;
            }
            _ => lines.push(format!("# {word}")),
        }
    }
    lines.into_iter().map(|text| Line { depth, text, optional: false }).collect()
}

/// A text as a YAML value: plain where no reader takes it for anything else, otherwise in quotes.
pub(super) fn scalar(text: &str) -> String {
    let is_word = |c: char| c.is_ascii_alphanumeric() || "._/-".contains(c);
    let is_reserved =
        ["true", "false", "yes", "no", "on", "off", "null", "y", "n"].contains(&&*text.to_ascii_lowercase());
    let is_address = || text.split('/').next().is_some_and(|address| address.parse::<Ipv4Addr>().is_ok());
    let starts_plain = text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '/') || is_address();
    // Names of numbers such as `inf`.
    if starts_plain && text.chars().all(is_word) && !is_reserved && text.parse::<f64>().is_err() {
        return text.to_owned();
    }
    let mut quoted = String::from('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            c if c.is_control() || "\u{2028}\u{2029}\u{feff}".contains(c) => {
                let _ = write!(quoted, "\\u{:04x}", u32::from(c));
            }
            c => quoted.push(c),
        }
    }
    quoted + "\""
}

/// A number stays plain. Anything else is quoted, and kk refuses it.
pub(super) fn number(text: &str) -> String {
    let is_number = !text.is_empty() && text.bytes().all(|c| c.is_ascii_digit());
    if is_number { text.to_owned() } else { scalar(text) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_read_as_it_was_written() {
        for text in [
            "node1",
            "10.0.0.1",
            "10.0.0.0/16",
            "1.10",
            "yes",
            "null",
            "",
            "a: b",
            "#",
            "a\"b\\c",
            "a\nb",
            "0x10",
            "1e3",
            "~",
            "inf",
            "2024-01-01",
            "\u{85}\u{2028}",
            "- a",
            "/var/lib",
            "v1.36.4",
            "a,b",
        ] {
            let document = format!("key: {}\n", scalar(text));
            assert_eq!(kk_cluster::parse_yaml(&document).unwrap()["key"], text, "{document}");
        }
        assert_eq!(scalar("10.0.0.1"), "10.0.0.1");
        assert_eq!(scalar("1.10"), "\"1.10\"");
    }

    #[test]
    fn words_of_a_cluster_stay_in_their_comment() {
        let mut text = Text::default();
        text.note(1, "a\nb: c\u{1b}[1m \u{2028}d");
        assert_eq!(text.to_string(), "  # a b: c?[1m d\n");
    }
}
