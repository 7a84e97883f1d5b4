//! Versions of Kubernetes and of components on the command line. A version that cannot be one is a usage error of every command.

use kk_config::{KubeVersion, NEWEST_MINOR, OLDEST_MINOR, component_version};

/// A version of Kubernetes that kk can install.
pub(super) fn kubernetes(text: &str) -> Result<KubeVersion, String> {
    let why = match text.parse::<KubeVersion>() {
        Ok(version) if version.is_supported() => return Ok(version),
        Ok(version) => format!("Kubernetes {version} is not supported"),
        Err(error) => error.to_string(),
    };
    let example = KubeVersion::default();
    Err(format!("{why}; use a version from 1.{OLDEST_MINOR} to 1.{NEWEST_MINOR}, such as {example}"))
}

/// The version of another component, without its `v`.
pub(super) fn component(text: &str) -> Result<String, String> {
    component_version(text)
        .ok_or_else(|| format!("`{text}` is not a version; write it as released, such as 1.2.3"))
}

/// The version of KubeSphere, with its `v`.
pub(super) fn kubesphere(text: &str) -> Result<String, String> {
    let bare = component_version(text)
        .ok_or_else(|| format!("`{text}` is not a version of KubeSphere; write it like v3.4.1"))?;
    Ok(format!("v{bare}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_checked_where_they_are_typed() {
        for (text, refused) in [
            ("v1.37.1", None),
            ("1.30.14", None),
            ("latest", Some("`latest` is not a Kubernetes version; use a version from 1.28 to ")),
            ("v1.36", Some("`v1.36` is not a Kubernetes version")),
            ("v1.23.17", Some("Kubernetes v1.23.17 is not supported")),
        ] {
            let said = kubernetes(text).err();
            assert_eq!(said.is_some(), refused.is_some(), "{text}");
            assert!(said.unwrap_or_default().starts_with(refused.unwrap_or_default()), "{text}");
        }
        assert_eq!(component("v3.6.2").as_deref(), Ok("3.6.2"));
        assert!(component("newest").unwrap_err().starts_with("`newest` is not a version"));
        assert_eq!(kubesphere("3.4.1").as_deref(), Ok("v3.4.1"));
        assert!(kubesphere("nightly").unwrap_err().starts_with("`nightly` is not a version of KubeSphere"));
    }
}
