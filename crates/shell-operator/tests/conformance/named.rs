//! Tests in code that cases name.

use std::path::Path;

/// Fails unless `name`, as `path::function`, is a test that is run. The path is relative to the crate.
pub(crate) fn check(name: &str) -> Result<(), String> {
    let (path, function) = name.rsplit_once("::").ok_or_else(|| format!("{name} is not path::function"))?;
    let text = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(path))
        .map_err(|error| format!("{path}: {error}"))?;
    let start = text
        .lines()
        .position(|line| {
            line.trim_start().trim_start_matches("async ").starts_with(&format!("fn {function}("))
        })
        .ok_or_else(|| format!("{path} has no function {function}"))?;
    // Attributes stand above, up to a blank line or the end of what is before.
    let lines: Vec<&str> = text.lines().take(start).collect();
    let attributes: Vec<&str> = (lines.iter().rev())
        .take_while(|line| !line.trim().is_empty() && line.trim() != "}")
        .copied()
        .collect();
    let has = |word: &str| attributes.iter().any(|line| line.contains(word));
    if !(has("#[test]") || has("#[tokio::test")) {
        return Err(format!("{function} is not a test"));
    }
    if has("#[ignore") {
        return Err(format!("{function} is never run"));
    }
    Ok(())
}
