//! Reads packed charts: a `.tar.gz` whose files are in one directory (helm's documentation, "Charts").

use std::io::Read;

use flate2::read::MultiGzDecoder;
use serde::Deserialize;
use tar::Archive;

/// Largest content of a chart that is unpacked, as in helm.
pub(super) const LARGEST_UNPACKED: u64 = 100 << 20;
/// Far more than any `Chart.yaml` needs.
const LARGEST_DOCUMENT: u64 = 1 << 20;

/// The name and version in a chart's `Chart.yaml`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Identity {
    pub(crate) name: String,
    pub(crate) version: String,
}

/// Reads `Chart.yaml` from a packed chart. Errors state why it is not a chart.
pub(crate) fn identity(archive: impl Read) -> Result<Identity, String> {
    let wrong = |error: std::io::Error| format!("it is not a packed chart: {}", plain(&error.to_string()));
    let mut archive = Archive::new(MultiGzDecoder::new(archive).take(LARGEST_UNPACKED));
    for entry in archive.entries().map_err(wrong)? {
        let mut entry = entry.map_err(wrong)?;
        let path = entry.path().map_err(wrong)?.to_string_lossy().into_owned();
        let parts: Vec<&str> = path.trim_start_matches("./").split('/').collect();
        if !entry.header().entry_type().is_file() || parts.len() != 2 || parts[1] != "Chart.yaml" {
            continue;
        }
        let mut text = String::new();
        entry.by_ref().take(LARGEST_DOCUMENT).read_to_string(&mut text).map_err(wrong)?;
        return Ok(parse(&text)?.0);
    }
    Err("it contains no Chart.yaml in a directory".to_owned())
}

/// Parses `Chart.yaml`: the chart's identity, and the names of the charts that it depends on.
pub(super) fn parse(text: &str) -> Result<(Identity, Vec<String>), String> {
    #[derive(Deserialize)]
    struct Document {
        name: String,
        version: String,
        dependencies: Option<Vec<Dependency>>,
    }
    #[derive(Deserialize)]
    struct Dependency {
        name: String,
    }
    let Document { name, version, dependencies } = serde_saphyr::from_str(text)
        .map_err(|error| format!("its Chart.yaml cannot be read: {}", first_line(&error.to_string())))?;
    for (word, what) in [(&name, "name"), (&version, "version")] {
        let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.+".contains(&byte);
        if word.is_empty() || word.starts_with('.') || !word.bytes().all(fits) {
            return Err(format!("its Chart.yaml has the {what} `{}`, which cannot be one", plain(word)));
        }
    }
    let needs = dependencies.into_iter().flatten().map(|dependency| dependency.name).collect();
    Ok((Identity { name, version }, needs))
}

pub(super) fn first_line(text: &str) -> String {
    plain(text.lines().next().unwrap_or_default())
}

/// Replaces control characters: the text may quote content from other machines.
fn plain(text: &str) -> String {
    text.replace(char::is_control, "?")
}
