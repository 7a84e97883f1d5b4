//! Lists a server's versions for messages.

use semver::Version;

/// Maximum number of versions that an error names.
pub(crate) const NAMED: usize = 8;

/// The newest of these versions that is not a pre-release.
pub(crate) fn newest_stable<'a>(versions: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let parsed = versions.filter_map(|text| Some((Version::parse(text.trim_start_matches('v')).ok()?, text)));
    let stable = parsed.filter(|(version, _)| version.pre.is_empty());
    stable.max_by(|(one, _), (other, _)| one.cmp(other)).map(|(_, text)| text)
}

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
