//! What to do about a failure, found by a host's own words.

/// A table of (text in the host's words, what to do).
#[derive(Clone, Default)]
pub(super) struct Hints(Vec<(String, String)>);

impl Hints {
    pub(super) fn add(&mut self, text: impl Into<String>, hint: impl Into<String>) {
        self.0.push((text.into(), hint.into()));
    }

    /// The first hint whose text occurs in `stderr`.
    pub(super) fn find(&self, stderr: &str) -> Option<String> {
        self.0.iter().find(|(text, _)| stderr.contains(text.as_str())).map(|(_, hint)| hint.clone())
    }
}
