//! Collects the findings about one file, and ensures that no finding shows a secret.

use crate::look_alike::{LookAlike, look_alike};
use crate::mask::{MASK, shown_line, shown_message};
use crate::yaml::{Node, Span, Value};
use crate::{ConfigErrors, Diagnostic, Place, Severity};

/// Maximum number of findings that are reported: a file with more is probably not a Cluster file.
const MOST: usize = 1000;
/// The text between a masked secret and a mistake after it.
const BEHIND_MASK: &str = " … ";

/// The findings of one run over one file.
pub(crate) struct Findings<'a> {
    file: &'a str,
    lines: Vec<String>,
    found: Vec<Finding>,
    /// Number of findings beyond [`MOST`].
    more: usize,
    /// Positions that could not be read: something "missing" near them may just be misspelt.
    unread: Vec<Span>,
    /// Values with a typing mistake: other errors in them are consequences of it.
    covered: Vec<Span>,
}

struct Finding {
    span: Option<Span>,
    severity: Severity,
    message: String,
    hint: String,
}

impl<'a> Findings<'a> {
    pub(crate) fn new(file: &'a str, text: &str) -> Self {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let lines = text.lines().map(str::to_owned).collect();
        Self { file, lines, found: Vec::new(), more: 0, unread: Vec::new(), covered: Vec::new() }
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

    /// An error that prevents a part of the file from being read.
    pub(crate) fn structure_error(&mut self, at: Span, message: impl Into<String>, hint: impl Into<String>) {
        self.unread.push(at);
        self.error(at, message, hint);
    }

    /// A typing mistake. No other error of the same value is reported.
    pub(crate) fn typing_error(&mut self, at: Span, message: impl Into<String>, hint: impl Into<String>) {
        self.structure_error(at, message, hint);
        self.covered(at);
    }

    /// Suppresses further errors of this value.
    pub(crate) fn covered(&mut self, at: Span) {
        self.unread.push(at);
        self.covered.push(at);
    }

    /// A line of the file, by its number.
    pub(crate) fn line(&self, number: usize) -> &str {
        number.checked_sub(1).and_then(|index| self.lines.get(index)).map_or("", String::as_str)
    }

    /// Whether any line of the file contains this text.
    pub(crate) fn contains(&self, text: &str) -> bool {
        self.lines.iter().any(|line| line.contains(text))
    }

    /// An unknown key. No finding shows its value: the key may be a badly misspelt `password`.
    pub(crate) fn unknown_key(
        &mut self,
        key: Span,
        value: Span,
        message: impl Into<String>,
        hint: impl Into<String>,
    ) {
        for number in value.line..=value.end_line {
            let Some(line) = self.lines.get_mut(number - 1) else { continue };
            let start = if number == value.line { value.column } else { 1 };
            let end = if number == value.end_line { value.end_column } else { usize::MAX };
            let is_hidden = |i: usize, c: char| (start..end).contains(&(i + 1)) && !c.is_whitespace();
            *line = line.chars().enumerate().map(|(i, c)| if is_hidden(i, c) { '*' } else { c }).collect();
        }
        self.structure_error(key, message, hint);
    }

    /// A missing field; only reported if everything around it could be read.
    pub(crate) fn missing(&mut self, at: At<'_>, message: impl Into<String>, hint: impl Into<String>) {
        if !self.is_unread(at) {
            self.error(at, message, hint);
        }
    }

    /// Whether something in this part of the file could not be read.
    pub(crate) fn is_unread(&self, part: At<'_>) -> bool {
        self.unread.iter().any(|span| part.extent.is_none_or(|extent| extent.contains(*span)))
    }

    /// Whether further findings are only counted.
    pub(crate) fn is_full(&self) -> bool {
        self.found.len() >= MOST
    }

    /// The warnings, or all findings if there is an error, in the order of the file.
    pub(crate) fn finish(mut self) -> Result<Vec<Diagnostic>, ConfigErrors> {
        let mut found = std::mem::take(&mut self.found);
        found.sort_by_key(|finding| finding.span);
        let (mut errors, warnings): (Vec<_>, Vec<_>) =
            found.iter().map(|finding| self.shown(finding)).partition(|one| one.severity == Severity::Error);
        if self.more > 0 {
            let message = format!("{} more are not shown", self.more);
            errors.push(Diagnostic { severity: Severity::Error, message, hint: None, place: None });
        }
        if errors.is_empty() { Ok(warnings) } else { Err(ConfigErrors { errors, warnings }) }
    }

    fn add(&mut self, severity: Severity, span: Option<Span>, message: String, hint: String) {
        if span.is_some_and(|span| self.covered.contains(&span)) {
            return;
        }
        if self.is_full() {
            self.more += 1;
        } else {
            self.found.push(Finding { span, severity, message, hint });
        }
    }

    fn shown(&self, finding: &Finding) -> Diagnostic {
        let message = shown_message(&finding.message);
        let place = finding.span.map(|span| self.place(span, &message));
        let hint = self.hint(finding);
        Diagnostic {
            severity: finding.severity,
            message,
            hint: (!hint.is_empty()).then(|| shown_message(&hint)),
            place,
        }
    }

    /// The hint, preceded by a note about look-alike characters.
    fn hint(&self, finding: &Finding) -> String {
        let text = finding.span.map(|span| self.text(span)).unwrap_or_default();
        match look_alike(&text) {
            Some(LookAlike { what, .. })
                if finding.severity == Severity::Error && !finding.message.contains(&what) =>
            {
                format!("there is {what} in this text; {}", finding.hint)
            }
            _ => finding.hint.clone(),
        }
    }

    /// The text at a position, limited to one line.
    fn text(&self, span: Span) -> String {
        let end = if span.end_line == span.line { span.end_column } else { usize::MAX };
        let length = end.saturating_sub(span.column);
        self.line(span.line).chars().skip(span.column - 1).take(length).collect()
    }

    /// The position in the form that is shown below this message.
    pub(crate) fn place(&self, span: Span, message: &str) -> Place {
        let mut source = shown_line(&self.lines, span.line - 1);
        let length = source.trim_end().chars().count();
        let text = self.text(span);
        if span.column > length && source.ends_with(MASK) && message.contains(&format!("`{text}`")) {
            // The mistake is after a secret. The message shows the text of the mistake, so the line may show it, too.
            source.push_str(BEHIND_MASK);
            let column = source.chars().count() + 1;
            source.push_str(&text);
            let width = text.chars().count().max(1);
            return Place { file: self.file.to_owned(), line: span.line, column, width, source };
        }
        // A masked line is shorter than the original.
        let column = span.column.min(length + 1);
        let end = if span.end_line == span.line { span.end_column.min(length + 1) } else { length + 1 };
        let width = end.saturating_sub(column).max(1);
        Place { file: self.file.to_owned(), line: span.line, column, width, source }
    }
}

/// A position in the tree that the checks walk through. Beyond the end of the tree, it stays at the last known position.
#[derive(Clone, Copy)]
pub(crate) struct At<'a> {
    node: Option<&'a Node>,
    /// The position that a finding shows.
    span: Option<Span>,
    /// The whole value at this position. If no value begins there, the whole value around it.
    extent: Option<Span>,
}

impl<'a> At<'a> {
    pub(crate) fn root(node: &'a Node) -> Self {
        Self { node: Some(node), span: Some(node.span), extent: Some(node.span) }
    }

    /// For a configuration that is not from a file.
    pub(crate) fn nowhere() -> Self {
        Self { node: None, span: None, extent: None }
    }

    /// The value of a key. A block of several lines is shown by its key, not by its first line.
    pub(crate) fn key(self, key: &str) -> Self {
        match self.node.and_then(|node| node.entry(key)) {
            Some((key, node)) => {
                let block = node.text().is_none() && node.span.line != key.span.line;
                Self { span: Some(if block { key.span } else { node.span }), ..Self::root(node) }
            }
            None => self.end(),
        }
    }

    /// A key itself, not its value.
    pub(crate) fn name(self, key: &str) -> Self {
        match self.node.and_then(|node| node.entry(key)) {
            Some((key, _)) => Self { node: None, span: Some(key.span), ..self },
            None => self.end(),
        }
    }

    /// Whether the file has this key. A configuration that is not from a file has no keys.
    pub(crate) fn has(self, key: &str) -> bool {
        self.node.is_some_and(|node| node.entry(key).is_some())
    }

    /// Whether this is the position of a value, not the position around a missing value.
    pub(crate) fn is_value(self) -> bool {
        self.node.is_some()
    }

    /// Whether there is a file at all.
    pub(crate) fn is_somewhere(self) -> bool {
        self.span.is_some()
    }

    /// An item of a list. If there is a single value in place of a list, the position of that value.
    pub(crate) fn item(self, index: usize) -> Self {
        match self.node.map(|node| &node.value) {
            Some(Value::List(items)) => items.get(index).map_or(self.end(), Self::root),
            _ => self.end(),
        }
    }

    fn end(self) -> Self {
        Self { node: None, ..self }
    }
}

impl At<'_> {
    /// " in line 7", or an empty text if there is no file.
    pub(crate) fn in_line(self) -> String {
        self.span.map(|span| format!(" in line {}", span.line)).unwrap_or_default()
    }
}

impl From<At<'_>> for Option<Span> {
    fn from(at: At<'_>) -> Self {
        at.span
    }
}
