//! Finds the remedy for a failure by the host's error message.

/// A table of (text in the host's message, hint).
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

/// The hint for a failure to write to `path`.
pub(super) fn at_path(path: &str, stderr: &str) -> Option<String> {
    let says = |text| stderr.contains(text);
    if says("No space left on device") || says("Disk quota exceeded") {
        Some(format!("make room on the file system of {path}"))
    } else if says("Read-only file system") {
        Some(format!("{path} is on a file system that cannot be written"))
    } else if says("is a directory") {
        Some(format!("move the directory {path} aside"))
    } else if says("File exists") || says("Not a directory") {
        Some(format!("{path} is not a directory: move it aside"))
    } else if says("Device or resource busy") {
        Some(format!("something is mounted below {path}: \"findmnt -R {path}\" shows what"))
    } else {
        None
    }
}
