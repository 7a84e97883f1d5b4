//! The sources of helm charts and Kubernetes manifests.

use std::fmt;

use super::ImageName;
use crate::Secret;

/// The source of a helm chart.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum ChartSource {
    /// A helm repository, which has an `index.yaml`.
    Repository {
        /// Its URL, without a `/` at its end.
        repo: String,
        /// The name of the chart there.
        name: String,
        /// Its exact version. Empty as long as the newest version is not known, for an addon whose version the file leaves open.
        version: String,
    },
    /// An OCI registry.
    Oci {
        /// Its name there. The tag is the version in the form that registries permit.
        image: ImageName,
        /// Its exact version.
        version: String,
    },
    /// A packed chart or a chart's directory, on the control machine.
    Path(String),
}

impl ChartSource {
    /// A chart of an OCI registry, by `registry/path`. Errors state why the name is wrong.
    pub(crate) fn oci(name: &str, version: &str) -> Result<Self, &'static str> {
        // A tag cannot contain a `+`: helm writes an underscore instead (HIP 6).
        let tag = version.replace('+', "_");
        let image = format!("{name}:{tag}").parse::<ImageName>().map_err(|_| "give oci://registry/path")?;
        Ok(Self::Oci { image, version: version.to_owned() })
    }

    /// The version of a chart of a server, if it is known.
    pub fn version(&self) -> Option<&str> {
        match self {
            Self::Repository { version, .. } | Self::Oci { version, .. } => {
                Some(version.as_str()).filter(|version| !version.is_empty())
            }
            Self::Path(_) => None,
        }
    }

    /// The same chart of a repository, with this version.
    #[must_use]
    pub fn with_version(self, version: &str) -> Self {
        match self {
            Self::Repository { repo, name, .. } => {
                Self::Repository { repo, name, version: version.to_owned() }
            }
            other => other,
        }
    }

    /// The source without the version: the URL of the repository, `oci://registry/path`, or the path.
    pub fn origin(&self) -> String {
        match self {
            Self::Repository { repo, .. } => repo.clone(),
            Self::Oci { image, .. } => format!("oci://{}", image.repository()),
            Self::Path(path) => path.clone(),
        }
    }
}

impl fmt::Display for ChartSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Repository { repo, name, version } if version.is_empty() => write!(f, "{name} of {repo}"),
            Self::Repository { repo, name, version } => write!(f, "{name} {version} of {repo}"),
            Self::Oci { version, .. } => write!(f, "{} {version}", self.origin()),
            Self::Path(path) => f.write_str(path),
        }
    }
}

/// A Kubernetes manifest.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct ManifestFile {
    /// Its name in a bundle.
    pub name: String,
    /// The source of the manifest.
    pub source: ManifestSource,
}

/// The source of a Kubernetes manifest.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum ManifestSource {
    /// A server.
    Url {
        /// Its address.
        url: String,
        /// The SHA-256 that it must have: 64 lower-case hexadecimal digits.
        sha256: Option<String>,
    },
    /// A file of the catalogue.
    Published {
        /// Its address upstream.
        url: String,
        /// The base address of the mirror from which it is downloaded; it may contain a password.
        mirror: Option<Secret>,
        /// The SHA-256 that it must have.
        sha256: String,
    },
    /// The control machine.
    Path(String),
}

impl ManifestSource {
    /// Parses a source that is written as one text.
    pub(crate) fn from_text(text: String) -> Self {
        if text.contains("://") { Self::Url { url: text, sha256: None } } else { Self::Path(text) }
    }

    /// Its path, or its URL without the query, which may contain a token.
    pub fn origin(&self) -> &str {
        match self {
            Self::Url { url, .. } | Self::Published { url, .. } => {
                url.split(['?', '#']).next().unwrap_or_default()
            }
            Self::Path(path) => path,
        }
    }

    /// The last part of its URL or path.
    pub fn file_name(&self) -> &str {
        self.origin().trim_end_matches('/').rsplit('/').next().unwrap_or_default()
    }
}

impl fmt::Display for ManifestSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.origin())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_shown_of_a_url_has_no_token() {
        for (text, shown, name) in [
            (
                "https://files.example/x/all.yaml?token=SENTINEL",
                "https://files.example/x/all.yaml",
                "all.yaml",
            ),
            ("https://files.example/x/all.yaml#SENTINEL", "https://files.example/x/all.yaml", "all.yaml"),
            ("https://files.example/x/", "https://files.example/x/", "x"),
            ("what?/all.yaml", "what?/all.yaml", "all.yaml"),
        ] {
            let source = ManifestSource::from_text(text.to_owned());
            assert_eq!((source.origin(), &*source.to_string(), source.file_name()), (shown, shown, name));
        }
    }
}
