//! Findings about a file: [`Diagnostic`], its plain rendering, and [`ConfigErrors`].

use std::borrow::Cow;
use std::fmt;

/// The severity of a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// The file cannot be used.
    Error,
    /// The file can be used; the user should know.
    Warning,
}

/// One finding in a configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diagnostic {
    /// The severity.
    pub severity: Severity,
    /// The finding, in one sentence without a full stop.
    pub message: String,
    /// The remedy.
    pub hint: Option<String>,
    /// The position; `None` if the configuration is not from a file.
    pub place: Option<Place>,
}

/// A position in a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// The file as the user named it.
    pub file: String,
    /// From 1.
    pub line: usize,
    /// In characters, from 1.
    pub column: usize,
    /// Characters to underline; at least 1.
    pub width: usize,
    /// The line itself, with values of secrets replaced by `***`.
    pub source: String,
}

/// Maximum number of characters that are shown of a line.
const LONGEST_LINE: usize = 160;
/// How many of these are before the position.
const BEFORE: usize = 60;

impl Place {
    /// The line, the number of characters before the underline, and the number of characters to underline. Of a long line, only
    /// the part around the position is returned: a file without line breaks is one line.
    fn shown(&self) -> (Cow<'_, str>, usize, usize) {
        let (before, length) = (self.column - 1, self.source.chars().count());
        if length <= LONGEST_LINE {
            return (Cow::Borrowed(&self.source), before, self.width);
        }
        let skipped = before.saturating_sub(BEFORE);
        let mut part: String = self.source.chars().skip(skipped).take(LONGEST_LINE).collect();
        let before = before - skipped;
        let width = self.width.min(part.chars().count().saturating_sub(before)).max(1);
        if skipped + LONGEST_LINE < length {
            part.push('…');
        }
        if skipped == 0 {
            (part.into(), before, width)
        } else {
            (format!("…{part}").into(), before + 1, width)
        }
    }
}

impl Diagnostic {
    /// Plain text without colour and without a line end: message, position, source line with carets, hint.
    pub fn render(&self) -> String {
        self.to_string()
    }
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let severity = match self.severity {
            Severity::Error => "error",
            Severity::Warning => "warning",
        };
        write!(f, "{severity}: {}", self.message)?;
        let mut margin = String::from(" ");
        if let Some(place) = &self.place {
            margin = " ".repeat(place.line.to_string().len());
            write!(f, "\n{margin}--> {}:{}:{}", place.file, place.line, place.column)?;
            let (source, before, width) = place.shown();
            write!(f, "\n{margin} |\n{} | {source}", place.line)?;
            // Tabs stay tabs so that the carets are below their text in any terminal.
            let before: String = source.chars().take(before).map(blank).collect();
            write!(f, "\n{margin} | {before}{}", "^".repeat(width))?;
        }
        match &self.hint {
            Some(hint) => write!(f, "\n{margin} = hint: {hint}"),
            None => Ok(()),
        }
    }
}

fn blank(c: char) -> char {
    if c == '\t' { '\t' } else { ' ' }
}

/// All findings about a configuration, in the order of the file. Displayed as all findings with a blank line between them, and
/// their number at the end.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct ConfigErrors {
    /// At least one.
    pub errors: Vec<Diagnostic>,
    /// The warnings.
    pub warnings: Vec<Diagnostic>,
}

impl fmt::Display for ConfigErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for finding in self.warnings.iter().chain(&self.errors) {
            write!(f, "{finding}\n\n")?;
        }
        let plural = if self.errors.len() == 1 { "" } else { "s" };
        write!(f, "{} error{plural} in the configuration", self.errors.len())
    }
}
