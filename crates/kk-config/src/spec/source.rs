//! Where charts of helm and files with objects come from.

use std::fmt;

use super::ImageName;

/// Where a chart of helm comes from.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum ChartSource {
    /// A helm repository: what has an `index.yaml`.
    Repository {
        /// Its URL, without a `/` at its end.
        repo: String,
        /// The name of the chart there.
        name: String,
        /// Its exact version.
        version: String,
    },
    /// An OCI registry.
    Oci {
        /// Its name there; the tag is the version as registries can hold it.
        image: ImageName,
        /// Its exact version.
        version: String,
    },
    /// A packed chart or the directory of one, on the control machine.
    Path(String),
}

impl ChartSource {
    /// A chart of an OCI registry, by `registry/path`. Errors say what is wrong with the name.
    pub(crate) fn oci(name: &str, version: &str) -> Result<Self, &'static str> {
        // A tag cannot hold a `+`: helm writes it so (HIP 6).
        let tag = version.replace('+', "_");
        let image = format!("{name}:{tag}").parse::<ImageName>().map_err(|_| "give oci://registry/path")?;
        Ok(Self::Oci { image, version: version.to_owned() })
    }

    /// Where it comes from, without its version: the URL of the repository, `oci://registry/path`, or the path.
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
            Self::Repository { repo, name, version } => write!(f, "{name} {version} of {repo}"),
            Self::Oci { version, .. } => write!(f, "{} {version}", self.origin()),
            Self::Path(path) => f.write_str(path),
        }
    }
}

/// A file with objects of Kubernetes.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct ManifestFile {
    /// Its name in a bundle.
    pub name: String,
    /// Where it comes from.
    pub source: ManifestSource,
}

/// Where a file with objects comes from.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum ManifestSource {
    /// A server.
    Url {
        /// Its address.
        url: String,
        /// 64 lower-case hexadecimal digits that it must have.
        sha256: Option<String>,
    },
    /// The control machine.
    Path(String),
}

impl ManifestSource {
    /// By how it is written in one word.
    pub(crate) fn from_text(text: String) -> Self {
        if text.contains("://") { Self::Url { url: text, sha256: None } } else { Self::Path(text) }
    }

    /// Its path, or its URL without what may be a token: the query.
    pub fn origin(&self) -> &str {
        match self {
            Self::Url { url, .. } => url.split(['?', '#']).next().unwrap_or_default(),
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
