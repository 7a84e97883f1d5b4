//! Lists a server's versions for messages.

use semver::Version;

/// Maximum number of versions that an error names.
pub(crate) const NAMED: usize = 8;

/// The newest of these versions, as text.
pub(crate) fn it_has(versions: &[&str]) -> String {
    let mut known: Vec<(Option<Version>, &str)> = versions
        .iter()
        .map(|text| (Version::parse(text.trim_start_matches('v')).ok(), *text))
        .filter(|(version, _)| version.is_some())
        .collect();
    known.sort();
    known.dedup();
    let newest: Vec<&str> = known.iter().rev().take(NAMED).map(|(_, text)| *text).collect();
    if newest.is_empty() {
        return String::new();
    }
    format!("; {} {}", if known.len() > NAMED { "the newest are" } else { "it has" }, newest.join(", "))
}
