//! From a file to a [`kk_config::Spec`].

use std::path::Path;

use kk_config::{KubeVersion, Loaded, Overrides};

use crate::error::Error;

/// Reads a file and checks it.
pub(super) fn file(path: &Path, kubernetes: Option<&str>) -> Result<Loaded, Error> {
    let text = std::fs::read_to_string(path).map_err(|error| {
        Error::config(
            format!("cannot read {}: {error}", path.display()),
            "name a file with -f; `kk create config` writes one to start from",
        )
    })?;
    let overrides = Overrides { kubernetes_version: kubernetes.map(str::to_owned) };
    kk_config::load(&path.display().to_string(), &text, &overrides).map_err(Error::Config)
}

/// A version from the command line, or the default.
pub(super) fn version(text: Option<&str>) -> Result<KubeVersion, Error> {
    let default = KubeVersion::default();
    let Some(text) = text else { return Ok(default) };
    text.parse().map_err(|error: kk_config::InvalidVersion| Error::Usage {
        message: error.to_string(),
        hint: format!("write --with-kubernetes {default}"),
    })
}
