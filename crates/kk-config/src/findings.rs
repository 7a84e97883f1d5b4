//! Collects what is wrong with one file, and makes sure that no finding shows a secret.

use crate::yaml::{Node, Span, Value};
use crate::{ConfigErrors, Diagnostic, Place, Severity};

/// The findings of one run over one file.
pub(crate) struct Findings<'a> {
    file: &'a str,
    lines: Vec<&'a str>,
    found: Vec<(Option<Span>, Diagnostic)>,
    /// Parts of the file could not be read, so that something "missing" may just be misspelt.
    incomplete: bool,
}

impl<'a> Findings<'a> {
    pub(crate) fn new(file: &'a str, text: &'a str) -> Self {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        Self { file, lines: text.lines().collect(), found: Vec::new(), incomplete: false }
    }

    pub(crate) fn error(
        &mut self,
        at: impl Into<Option<Span>>,
        message: impl Into<String>,
        hint: impl Into<String>,
    ) {
        self.add(Severity::Error, at.into(), message.into(), hint.into());
    }

    pub(crate) fn warning(
        &mut self,
        at: impl Into<Option<Span>>,
        message: impl Into<String>,
        hint: impl Into<String>,
    ) {
        self.add(Severity::Warning, at.into(), message.into(), hint.into());
    }

    /// An error because of which part of the file is not read.
    pub(crate) fn structure_error(
        &mut self,
        at: impl Into<Option<Span>>,
        message: impl Into<String>,
        hint: impl Into<String>,
    ) {
        self.incomplete = true;
        self.error(at, message, hint);
    }

    /// Something that should be there is not; only told when the whole file could be read.
    pub(crate) fn missing(
        &mut self,
        at: impl Into<Option<Span>>,
        message: impl Into<String>,
        hint: impl Into<String>,
    ) {
        if !self.incomplete {
            self.error(at, message, hint);
        }
    }

    /// The warnings, or everything when there is an error; each in the order of the file.
    pub(crate) fn finish(mut self) -> Result<Vec<Diagnostic>, ConfigErrors> {
        self.found.sort_by_key(|(span, _)| *span);
        let (errors, warnings): (Vec<_>, Vec<_>) =
            self.found.into_iter().map(|(_, finding)| finding).partition(|f| f.severity == Severity::Error);
        if errors.is_empty() { Ok(warnings) } else { Err(ConfigErrors { errors, warnings }) }
    }

    fn add(&mut self, severity: Severity, span: Option<Span>, message: String, hint: String) {
        let hint = (!hint.is_empty()).then_some(hint);
        let place = span.map(|span| self.place(span));
        self.found.push((span, Diagnostic { severity, message, hint, place }));
    }

    fn place(&self, span: Span) -> Place {
        let source = shown_line(&self.lines, span.line - 1);
        let length = source.trim_end().chars().count();
        // A masked line is shorter than the original.
        let column = span.column.min(length + 1);
        let end = if span.end_line == span.line { span.end_column.min(length + 1) } else { length + 1 };
        let width = end.saturating_sub(column).max(1);
        Place { file: self.file.to_owned(), line: span.line, column, width, source }
    }
}

/// The line with the values of secrets masked. This looks at the text only, because it must also work where
/// the text is no YAML, or where a key that should be `password` is misspelt.
fn shown_line(lines: &[&str], index: usize) -> String {
    let line = lines.get(index).copied().unwrap_or_default().trim_end();
    if let Some(end) = secret_key_end(line) {
        let rest = line[end..].trim();
        return if rest.is_empty() { line.to_owned() } else { format!("{} ***", &line[..end]) };
    }
    // A line without a key continues the value of the last one before it, such as an inline private key.
    let continues = key_ends(line).next().is_none() && !line.trim_start().starts_with(['-', '#']);
    let mut before = lines[..index.min(lines.len())].iter().rev();
    let owner = before.find(|line| key_ends(line).next().is_some());
    if continues && owner.is_some_and(|owner| secret_key_end(owner).is_some()) {
        let indent = line.len() - line.trim_start().len();
        return format!("{}***", &line[..indent]);
    }
    line.to_owned()
}

/// The position after the colon of the first key in the line that names a secret.
fn secret_key_end(line: &str) -> Option<usize> {
    key_ends(line).find(|&end| {
        let before = line[..end].trim_end_matches(':').trim_end_matches(['"', '\'', ' ']);
        let start = before.rfind(|c: char| !c.is_alphanumeric() && c != '_' && c != '-').map_or(0, |i| i + 1);
        names_secret(&before[start..])
    })
}

/// Positions after each colon that ends a key (a colon before a space or the end of the line).
fn key_ends(line: &str) -> impl Iterator<Item = usize> {
    line.match_indices(':').map(|(i, _)| i + 1).filter(|&end| {
        let next = line[end..].chars().next();
        next.is_none_or(|c| c.is_whitespace() || matches!(c, '"' | '\''))
    })
}

fn names_secret(key: &str) -> bool {
    const PARTS: [&str; 6] = ["passw", "pwd", "secret", "token", "privatekey", "credential"];
    const NAMES: [&str; 3] = ["password", "sudopassword", "privatekey"];
    // Paths and public keys are no secrets, and seeing them helps.
    const HARMLESS: [&str; 2] = ["privatekeypath", "hostkey"];
    let key = key.to_lowercase();
    if HARMLESS.contains(&key.as_str()) {
        return false;
    }
    PARTS.iter().any(|part| key.contains(part))
        || NAMES.iter().any(|name| strsim::damerau_levenshtein(name, &key) <= 3)
}

/// A place in the tree that checks walk along; where the tree ends it stays at the last known place.
#[derive(Clone, Copy)]
pub(crate) struct At<'a> {
    node: Option<&'a Node>,
    span: Option<Span>,
}

impl<'a> At<'a> {
    pub(crate) fn root(node: &'a Node) -> Self {
        Self { node: Some(node), span: Some(node.span) }
    }

    /// For a configuration that comes from no file.
    pub(crate) fn nowhere() -> Self {
        Self { node: None, span: None }
    }

    /// The value of a key.
    pub(crate) fn key(self, key: &str) -> Self {
        self.step(self.node.and_then(|node| node.get(key)))
    }

    /// A key itself, not its value.
    pub(crate) fn name(self, key: &str) -> Self {
        match self.node.and_then(|node| node.entry(key)) {
            Some((key, _)) => Self { node: None, span: Some(key.span) },
            None => self,
        }
    }

    /// An item of a list; of a single value in place of a list, that value.
    pub(crate) fn item(self, index: usize) -> Self {
        self.step(match self.node.map(|node| &node.value) {
            Some(Value::List(items)) => items.get(index),
            _ => None,
        })
    }

    fn step(self, node: Option<&'a Node>) -> Self {
        node.map_or(Self { node: None, span: self.span }, |node| Self {
            node: Some(node),
            span: Some(node.span),
        })
    }
}

impl At<'_> {
    /// " in line 7", or nothing when there is no file.
    pub(crate) fn in_line(self) -> String {
        self.span.map(|span| format!(" in line {}", span.line)).unwrap_or_default()
    }
}

impl From<At<'_>> for Option<Span> {
    fn from(at: At<'_>) -> Self {
        at.span
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_secrets_are_masked_however_they_are_written() {
        let cases = [
            ("    password: hunter2", "    password: ***"),
            ("    pasword: hunter2", "    pasword: ***"),
            ("    Passwort: hunter2", "    Passwort: ***"),
            ("    passwd: [hunter2", "    passwd: ***"),
            ("- {name: node1, password: hunter2, port: ssh}", "- {name: node1, password: ***"),
            ("{\"password\":\"hunter2\"}", "{\"password\": ***"),
            ("    privatKey: hunter2", "    privatKey: ***"),
            ("    privateKey: |", "    privateKey: ***"),
            ("    password:", "    password:"),
            ("    privateKeyPath: ~/.ssh/id", "    privateKeyPath: ~/.ssh/id"),
            ("    port: ssh", "    port: ssh"),
            ("    address: fd00::1", "    address: fd00::1"),
        ];
        for (line, shown) in cases {
            assert_eq!(shown_line(&[line], 0), shown);
        }
    }

    #[test]
    fn a_value_over_several_lines_is_masked_in_each() {
        let lines = ["  privateKey: |", "    -----BEGIN KEY-----", "    hunter2", "  port: 22"];
        let shown: Vec<String> = (0..lines.len()).map(|i| shown_line(&lines, i)).collect();
        assert_eq!(shown, ["  privateKey: ***", "    -----BEGIN KEY-----", "    ***", "  port: 22"]);
    }
}
