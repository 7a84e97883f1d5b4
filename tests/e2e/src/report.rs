//! What a person reads when a scenario fails: the last lines of outputs and logs.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

pub(crate) use kk_test_common::line;

use crate::site::files_below;

/// Lines of a log that a failure repeats.
const LAST_LINES: usize = 30;

/// The last lines of a text, each behind a bar.
pub(crate) fn last_lines(text: &str) -> String {
    let lines: Vec<&str> = text.lines().collect();
    let last = &lines[lines.len().saturating_sub(LAST_LINES)..];
    last.iter().flat_map(|line| ["  | ", line, "\n"]).collect()
}

/// The newest log of kk below a directory, with its last lines, unless it is from before `since`.
pub(crate) fn last_log(directory: &Path, since: SystemTime) -> Option<String> {
    let logs = files_below(directory)
        .into_iter()
        .filter(|path| path.extension().is_some_and(|ending| ending == "log"));
    let changed = |path: PathBuf| Some((fs::metadata(&path).ok()?.modified().ok()?, path));
    let (_, path) = logs.filter_map(changed).max().filter(|(changed, _)| *changed >= since)?;
    let text = fs::read_to_string(&path).ok()?;
    Some(format!("  last lines of {}:\n{}", path.display(), last_lines(&text)))
}
