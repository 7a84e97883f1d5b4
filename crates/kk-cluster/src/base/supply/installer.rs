//! Source of ks-installer.

use std::sync::Arc;

use kk_artifact::ImageArchive;
use kk_config::{InstallerImage, Spec};
use kk_util::sha256;

/// The image of ks-installer, as far as the control machine knows it.
#[derive(Clone, Debug, Default)]
pub(crate) enum Installer {
    /// ks-installer is not wanted, or the file specifies no image.
    #[default]
    None,
    /// Hosts pull it by this name.
    Registry(String),
    /// It is sent to the control planes.
    Archive(Arc<ImageArchive>),
    /// The archive cannot be used, for this reason.
    Unusable(String),
}

impl Installer {
    /// Reads the archive that the file names on the control machine, if any.
    pub(crate) fn of(spec: &Spec) -> Self {
        match spec.kubesphere.as_ref().and_then(|wanted| wanted.image.as_ref()) {
            None => Self::None,
            Some(InstallerImage::Registry(name)) => Self::Registry(name.to_string()),
            Some(InstallerImage::Archive(path)) => match ImageArchive::open(path) {
                Ok(archive) => Self::Archive(Arc::new(archive)),
                Err(why) => Self::Unusable(format!("{} {why}", path.display())),
            },
        }
    }

    /// The name of the image on hosts.
    pub(crate) fn name(&self) -> Option<String> {
        match self {
            Self::Registry(name) => Some(name.clone()),
            Self::Archive(archive) => Some(pinned(archive)),
            Self::None | Self::Unusable(_) => None,
        }
    }

    /// A revision that the operator repeats in its status, so that the status of a previous operator is not mistaken for its own.
    pub(crate) fn revision(&self) -> String {
        let text = match self {
            Self::Registry(name) => name.clone(),
            Self::Archive(archive) => format!("{}@{}", archive.name, archive.digest),
            Self::None | Self::Unusable(_) => String::new(),
        };
        sha256(text.as_bytes())[..16].to_owned()
    }
}

/// A name that identifies exactly this content: pods that started by the name in the archive would keep the previous content of
/// that name.
pub(crate) fn pinned(archive: &ImageArchive) -> String {
    let is_tag = |(_, tag): &(&str, &str)| !tag.contains('/');
    let repository = archive.name.rsplit_once(':').filter(is_tag).map_or(&*archive.name, |(name, _)| name);
    let digest = archive.digest.trim_start_matches("sha256:");
    format!("{repository}:kk-{}", digest.get(..12).unwrap_or(digest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_content_has_another_name() {
        for (name, digest, expected) in [
            (
                "docker.io/library/ks:latest",
                "sha256:0123456789abcdef",
                "docker.io/library/ks:kk-0123456789ab",
            ),
            ("hub:5000/ks", "sha256:f", "hub:5000/ks:kk-f"),
        ] {
            let [name, digest] = [name, digest].map(str::to_owned);
            let archive = ImageArchive { path: "x".into(), name, digest, architectures: Vec::new() };
            assert_eq!(pinned(&archive), expected);
        }
    }
}
