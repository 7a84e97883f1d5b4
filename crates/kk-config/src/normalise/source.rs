//! Charts and manifests: of a Manifest, and of the addons of a Cluster.

use std::collections::{BTreeMap, BTreeSet};

use super::syntax;
use crate::findings::{At, Findings};
use crate::spec::{ChartSource, ManifestFile, ManifestSource};
use crate::v1alpha2;

/// Longest name of a file in a bundle: paths there have at most 100 bytes.
const LONGEST_NAME: usize = 80;

/// `spec.charts` of a Manifest.
pub(super) fn charts(
    docs: Vec<v1alpha2::ManifestChart>,
    at: At<'_>,
    out: &mut Findings<'_>,
) -> BTreeSet<ChartSource> {
    let mut all = BTreeSet::new();
    for (i, doc) in docs.into_iter().enumerate() {
        let at = at.item(i);
        let (name, repo, version, path) = (doc.name, doc.repo, doc.version, doc.path);
        let given = Chart { name, repo, version, path, may_be_open: false };
        let Some(chart) = given.source(at, out) else { continue };
        let message = format!("the chart {chart} is listed twice");
        if !all.insert(chart) {
            out.error(at, message, "remove one of them");
        }
    }
    all
}

/// `spec.manifests` of a Manifest.
pub(super) fn manifests(
    docs: Vec<v1alpha2::ManifestFile>,
    at: At<'_>,
    out: &mut Findings<'_>,
) -> BTreeSet<ManifestFile> {
    let mut all: BTreeMap<String, ManifestFile> = BTreeMap::new();
    for (i, doc) in docs.into_iter().enumerate() {
        let at = at.item(i);
        let Some(file) = manifest(doc, at, out) else { continue };
        if all.contains_key(&file.name) {
            let message = format!("two manifests have the name `{}`", file.name);
            out.error(at, message, "give one of them another `name`");
        } else {
            all.insert(file.name.clone(), file);
        }
    }
    all.into_values().collect()
}

/// Checks a manifest. `None`: an error was reported.
fn manifest(doc: v1alpha2::ManifestFile, at: At<'_>, out: &mut Findings<'_>) -> Option<ManifestFile> {
    let source = match (doc.url, doc.path) {
        (Some(url), None) => {
            if let Some(problem) = syntax::url_problem(&url) {
                out.error(at.key("url"), "this is not the URL of a manifest", problem);
                return None;
            }
            let is_sum = |sum: &String| sum.len() == 64 && sum.bytes().all(|byte| byte.is_ascii_hexdigit());
            if doc.sha256.as_ref().is_some_and(|sum| !is_sum(sum)) {
                out.error(at.key("sha256"), "this is not a SHA-256", "give its 64 hexadecimal digits");
                return None;
            }
            if doc.sha256.is_none() {
                warn_of_http(&url, at.key("url"), "use https://, or give its `sha256`", out);
            }
            ManifestSource::Url { url, sha256: doc.sha256.map(|sum| sum.to_ascii_lowercase()) }
        }
        (None, Some(path)) => {
            if doc.sha256.is_some() {
                let hint = "remove it: the bundle records the checksum of the file";
                out.error(at.name("sha256"), "a file of this machine must not set sha256", hint);
                return None;
            }
            ManifestSource::Path(one_line(path, at.key("path"), out)?)
        }
        _ => {
            out.missing(at, "a manifest has one origin", "give either `url` or `path`");
            return None;
        }
    };
    let name = doc.name.unwrap_or_else(|| source.file_name().to_owned());
    if is_file_name(&name) {
        return Some(ManifestFile { name, source });
    }
    let hint =
        format!("give `name`: at most {LONGEST_NAME} letters, digits, `-`, `_`, `.`, `+`, no `.` in front");
    out.error(at, format!("`{name}` cannot be the name of a manifest"), hint);
    None
}

fn is_file_name(text: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.+".contains(&byte);
    !text.is_empty() && text.len() <= LONGEST_NAME && !text.starts_with('.') && text.bytes().all(fits)
}

/// A chart as written in a file.
pub(super) struct Chart {
    pub(super) name: Option<String>,
    pub(super) repo: Option<String>,
    pub(super) version: Option<String>,
    pub(super) path: Option<String>,
    /// Whether a chart of a repository needs no version.
    pub(super) may_be_open: bool,
}

impl Chart {
    /// The source of the chart. `None`: an error was reported.
    pub(super) fn source(self, at: At<'_>, out: &mut Findings<'_>) -> Option<ChartSource> {
        match (self.path, self.repo, self.name) {
            (Some(path), None, None) => {
                if self.version.is_some() {
                    let hint = "remove it: the chart itself says its version";
                    out.error(at.name("version"), "a chart of this machine must not set a version", hint);
                }
                Some(ChartSource::Path(one_line(path, at.key("path"), out)?))
            }
            (None, None, Some(name)) if name.starts_with("oci://") => {
                let version = exact(self.version, &name, at, out)?;
                let source = ChartSource::oci(name.trim_start_matches("oci://"), &version);
                let message = format!("`{name}` is not a chart of an OCI registry");
                source.map_err(|hint| out.error(at.key("name"), message, hint)).ok()
            }
            (None, Some(repo), Some(name)) => {
                let version = match self.version {
                    None if self.may_be_open => String::new(),
                    given => exact(given, &name, at, out)?,
                };
                if let Some(problem) = syntax::url_problem(&repo) {
                    out.error(at.key("repo"), format!("`{repo}` is not a helm repository"), problem);
                    return None;
                }
                if !is_file_name(&name) {
                    let hint = "give it as the repository lists it; charts of a registry begin with oci://";
                    out.error(at.key("name"), format!("`{name}` cannot be the name of a chart"), hint);
                    return None;
                }
                warn_of_http(
                    &repo,
                    at.key("repo"),
                    "use https://, or a chart of this machine by its path",
                    out,
                );
                let repo = repo.trim_end_matches('/').to_owned();
                Some(ChartSource::Repository { repo, name, version })
            }
            _ => {
                let hint =
                    "give `name`, `repo` and `version`, or `name: oci://…` and `version`, or only `path`";
                out.missing(at, "a chart has one origin", hint);
                None
            }
        }
    }
}

/// kk applies the fetched objects with all rights in the cluster.
pub(super) fn warn_of_http(url: &str, at: At<'_>, hint: &str, out: &mut Findings<'_>) {
    if url.starts_with("http://") {
        let message = "plain HTTP: an attacker on the network path can replace the content, which is applied with all rights";
        out.warning(at, message, hint);
    }
}

/// Requires an exact version: the version that matches a range changes over time.
fn exact(version: Option<String>, name: &str, at: At<'_>, out: &mut Findings<'_>) -> Option<String> {
    let Some(version) = version else {
        let hint = "add `version: 1.2.3`: the newest version changes over time";
        out.missing(at, format!("the chart `{name}` has no version"), hint);
        return None;
    };
    let numbers = version.trim_start_matches('v').split(['-', '+']).next().unwrap_or_default();
    let is_number = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"-.+".contains(&byte);
    let exact = numbers.split('.').count() == 3 && numbers.split('.').all(is_number);
    if exact && version.len() <= LONGEST_NAME && version.bytes().all(fits) {
        return Some(version);
    }
    let message = format!("`{version}` is not the version of a chart");
    out.error(
        at.key("version"),
        message,
        "use an exact one, such as 1.2.3: the result of a range changes over time",
    );
    None
}

/// Checks a path on the control machine.
pub(super) fn one_line(path: String, at: At<'_>, out: &mut Findings<'_>) -> Option<String> {
    if path.contains(char::is_control) || path.len() > 1000 {
        out.error(at, "this is not a path of this machine", "give it in one line");
        return None;
    }
    Some(path)
}
