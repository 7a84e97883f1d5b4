//! Sample files for `kk create config`: the files of `config-samples/`, with the user's name and version.

use crate::{ConfigErrors, KubeVersion, Overrides, load};
use serde_json::{Map, Value};
use std::fmt::Write as _;

/// The available samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SampleStyle {
    /// One host with every role.
    AllInOne,
    /// One control plane and two workers; the sample with the most explanations.
    ThreeNodes,
    /// Three control planes behind a load balancer.
    HighAvailability,
    /// A mirror and a private registry.
    Offline,
}

impl SampleStyle {
    /// All samples.
    pub const ALL: [Self; 4] = [Self::AllInOne, Self::ThreeNodes, Self::HighAvailability, Self::Offline];

    /// The name of its file in `config-samples/`.
    pub fn file_name(self) -> &'static str {
        self.file().0
    }

    /// The name of its file, and its text.
    fn file(self) -> (&'static str, &'static str) {
        match self {
            Self::AllInOne => ("all-in-one.yaml", include_str!("../../../config-samples/all-in-one.yaml")),
            Self::ThreeNodes => {
                ("three-nodes.yaml", include_str!("../../../config-samples/three-nodes.yaml"))
            }
            Self::HighAvailability => ("ha.yaml", include_str!("../../../config-samples/ha.yaml")),
            Self::Offline => ("offline.yaml", include_str!("../../../config-samples/offline.yaml")),
        }
    }
}

/// The commented text of a sample with this cluster name and version, for a file of this name.
///
/// Errors if the name or the version is invalid.
pub fn sample(
    name: &str,
    version: KubeVersion,
    style: SampleStyle,
    file: &str,
) -> Result<String, ConfigErrors> {
    let (own, text) = style.file();
    let text = text.replacen("\n  name: sample\n", &format!("\n  name: {name}\n"), 1);
    let text = with_version(&text, version);
    let text = text.replace(&format!(" -f {own}"), &format!(" -f {file}"));
    load("sample", &text, &Overrides::default())?;
    Ok(text)
}

/// The end of a sample with KubeSphere of this version: the image of the installer, and a `ClusterConfiguration` with every
/// component that can be switched on. Other settings have the operator's defaults.
pub fn kubesphere_sample(version: &str) -> String {
    let mut text = format!(
        "  kubesphere:
    # The image of ks-installer with your payload: an archive, or a name in a registry.
    image: ./ks-installer.tar
---
apiVersion: installer.kubesphere.io/v1alpha1
kind: ClusterConfiguration
metadata:
  name: ks-installer
  namespace: kubesphere-system
  labels: {{version: {version}}}        # the payload must have this version
spec:
"
    );
    for (component, setting) in components() {
        // JSON is YAML.
        let _ = writeln!(text, "  {component}: {setting}");
    }
    text
}

/// The components that can be switched on, all off. In `common`, the operator chooses.
fn components() -> Map<String, Value> {
    let mut components = Map::new();
    for path in ks_spec::switches().iter().filter(|path| !path.starts_with("common.")) {
        let mut keys = path.split('.');
        let Some(first) = keys.next() else { continue };
        let mut place = components.entry(first).or_insert(Value::Null);
        for key in keys {
            place = &mut place[key];
        }
        *place = Value::Bool(false);
    }
    components
}

/// The text with this version in place of the version in the sample.
fn with_version(text: &str, version: KubeVersion) -> String {
    const KEY: &str = "\n  kubernetes:\n    version: ";
    let (before, rest) = text.split_once(KEY).expect("every sample specifies a version");
    let (_, after) = rest.split_once('\n').expect("a sample does not end with the version");
    format!("{before}{KEY}{version}\n{after}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_sample_loads_without_warnings_and_carries_name_and_version() {
        let version: KubeVersion = "v1.37.1".parse().unwrap();
        for style in SampleStyle::ALL {
            let text = sample("mine", version, style, "mine.yaml").unwrap();
            assert!(
                text.lines().all(|line| !line.contains(" -f ") || line.contains(" -f mine.yaml")),
                "{text}"
            );
            let loaded = load("sample", &text, &Overrides::default()).unwrap();
            assert_eq!(loaded.warnings, [], "{style:?}");
            assert_eq!(
                (loaded.spec.name.as_str(), loaded.spec.kubernetes.version),
                ("mine", version),
                "{style:?}"
            );
        }
    }

    #[test]
    fn a_sample_with_kubesphere_loads_with_every_style() {
        for version in ["v3.4.1", "v4.1.3"] {
            for style in SampleStyle::ALL {
                let text = sample("mine", KubeVersion::default(), style, "mine.yaml").unwrap();
                let text = text + &kubesphere_sample(version);
                let loaded = load("sample", &text, &Overrides::default()).unwrap();
                assert_eq!(loaded.warnings, [], "{style:?}");
                let kubesphere = loaded.spec.kubesphere.expect("the file asks for it");
                assert_eq!(kubesphere.version.as_deref(), Some(version));
                assert_eq!(kubesphere.configuration["devops"]["enabled"], false);
            }
        }
    }

    #[test]
    fn a_name_that_cannot_be_used_is_an_error() {
        let error = sample("My Cluster", KubeVersion::default(), SampleStyle::AllInOne, "-").unwrap_err();
        assert!(error.to_string().contains("`My Cluster` cannot name a cluster"), "{error}");
    }
}
