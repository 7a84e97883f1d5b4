//! Output for the person who runs scenarios: plain lines on stdout, and the last lines of outputs and logs of a failed scenario.

use std::cell::RefCell;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// The same as [`line`] without a label: lines that other programs read.
pub(crate) use kk_test_common::line as result;

use crate::site::files_below;

/// Lines of a log that a failure repeats.
const LAST_LINES: usize = 30;

thread_local! {
    /// Prefix of each line of this thread, when several labs run at once.
    static LABEL: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// Sets the prefix of each line that this thread prints from now on.
pub(crate) fn set_label(label: Option<String>) {
    LABEL.set(label);
}

/// One line, or several that stay together. A closed stdout is no failure.
pub(crate) fn line(text: &str) {
    let label = LABEL.with_borrow(Clone::clone);
    result(&label.map_or_else(|| text.to_owned(), |label| labelled(&label, text)));
}

fn labelled(label: &str, text: &str) -> String {
    text.lines().map(|line| format!("{label}: {line}")).collect::<Vec<_>>().join("\n")
}

/// The last lines of a text, each behind a bar.
pub(crate) fn last_lines(text: &str) -> String {
    let lines: Vec<&str> = text.lines().collect();
    let last = &lines[lines.len().saturating_sub(LAST_LINES)..];
    last.iter().flat_map(|line| ["  | ", line, "\n"]).collect()
}

/// The newest log of kk below a directory, with its last lines, unless it is older than `since`.
pub(crate) fn last_log(directory: &Path, since: SystemTime) -> Option<String> {
    let logs = files_below(directory)
        .into_iter()
        .filter(|path| path.extension().is_some_and(|ending| ending == "log"));
    let changed = |path: PathBuf| Some((fs::metadata(&path).ok()?.modified().ok()?, path));
    let (_, path) = logs.filter_map(changed).max().filter(|(changed, _)| *changed >= since)?;
    let text = fs::read_to_string(&path).ok()?;
    Some(format!("  last lines of {}:\n{}", path.display(), last_lines(&text)))
}
