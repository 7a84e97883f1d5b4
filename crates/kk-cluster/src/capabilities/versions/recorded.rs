//! Note of a cluster's versions: lines of a component and its version.

use std::collections::BTreeMap;

use kk_artifact::{Component, Versions};
use kk_config::{Components, Host, KubeVersion, Spec};
use kk_engine::Question;

use crate::model::cluster::Presence;

/// The path of the note.
pub(super) const PATH: &str = "/etc/kubernetes/kubekey/versions.yaml";

/// The note of a control plane; empty if there is no note.
pub(crate) const RECORDED: Question<Recorded> = Question::new(
    "versions",
    "[ ! -e /etc/kubernetes/kubekey/versions.yaml ] || cat /etc/kubernetes/kubekey/versions.yaml",
    Recorded::parse,
);

/// Versions by component.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Recorded(BTreeMap<String, String>);

impl Recorded {
    /// The versions of a plan.
    pub(super) fn of(versions: &Versions) -> Self {
        let mut all: BTreeMap<_, _> =
            versions.components().map(|(name, version)| (name.to_owned(), version.to_owned())).collect();
        all.insert("kubernetes".to_owned(), versions.kubernetes.to_string());
        Self(all)
    }

    /// The text of the note: YAML, with each version as a string.
    pub(super) fn text(&self) -> String {
        let head = "# Written by kk: the versions that the cluster has.".to_owned();
        let lines = self.0.iter().map(|(name, version)| format!("{name}: \"{version}\""));
        std::iter::once(head).chain(lines).collect::<Vec<_>>().join("\n") + "\n"
    }

    /// Parses the output of a host. An invalid line makes the whole note unusable.
    fn parse(printed: &str) -> Option<Self> {
        let lines = printed.lines().filter(|line| !line.starts_with('#') && !line.trim().is_empty());
        let pair = |line: &str| {
            let (name, version) = line.split_once(": ")?;
            Some((name.to_owned(), version.trim().trim_matches('"').to_owned()))
        };
        lines.map(pair).collect::<Option<_>>().map(Self)
    }

    /// The version of Kubernetes.
    pub(crate) fn kubernetes(&self) -> Option<KubeVersion> {
        self.0.get("kubernetes")?.parse().ok()
    }

    fn minor(&self) -> Option<(u32, u32)> {
        self.kubernetes().map(|version| (version.major, version.minor))
    }

    fn is_for(&self, kubernetes: KubeVersion) -> bool {
        self.minor() == Some((kubernetes.major, kubernetes.minor))
    }

    fn is_before(&self, kubernetes: KubeVersion) -> bool {
        self.minor().is_some_and(|minor| minor < (kubernetes.major, kubernetes.minor))
    }

    fn is_after(&self, kubernetes: KubeVersion) -> bool {
        self.minor().is_some_and(|minor| minor > (kubernetes.major, kubernetes.minor))
    }

    /// The pins of the file, and the versions of the cluster for components without a pin.
    pub(crate) fn behind(&self, pinned: &Components) -> Components {
        let mut pinned = pinned.clone();
        for (key, pin) in pinned.iter_mut() {
            if pin.is_none() {
                *pin = self.0.get(key).cloned();
            }
        }
        pinned
    }

    /// The version of a component.
    pub(crate) fn of_component(&self, component: Component) -> Option<&str> {
        self.0.get(component.version_key()).map(String::as_str)
    }

    /// Components with another version in the note, with both versions.
    pub(super) fn others(&self, versions: &Versions) -> Vec<String> {
        let wanted = Self::of(versions);
        let others = wanted.0.iter().filter(|(name, _)| *name != "kubernetes");
        let other = |(name, version): (&String, &String)| {
            let there = self.0.get(name).filter(|there| *there != version)?;
            Some(format!("{name} {version} (here {there})"))
        };
        others.filter_map(other).collect()
    }

    /// The components among these that would be downgraded to an older minor version, with the version of the cluster.
    pub(super) fn steps_back(&self, of: &[Component], versions: &Versions) -> Vec<(&'static str, String)> {
        let back = |component: &Component| {
            let there = self.of_component(*component)?;
            is_older_minor(&versions.of(*component), there).then(|| (component.name(), there.to_owned()))
        };
        of.iter().filter_map(back).collect()
    }
}

/// Whether a version has an older minor version than another; false if one of them cannot be parsed.
pub(crate) fn is_older_minor(version: &str, other: &str) -> bool {
    let minor = |version| numbers(version).get(..2).map(<[u32]>::to_vec);
    minor(version).zip(minor(other)).is_some_and(|(version, other)| version < other)
}

/// The oldest of some versions.
pub(crate) fn oldest<'a>(versions: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    versions.into_iter().min_by_key(|version| numbers(version))
}

fn numbers(version: &str) -> Vec<u32> {
    version.split('.').map_while(|number| number.parse().ok()).collect()
}

/// The note of the cluster, if it is for the same minor version of Kubernetes as the file: the note of the control plane whose
/// API is used, else the first on another control plane.
pub(crate) fn of_cluster<'a>(
    presence: &BTreeMap<&'a str, Presence<'a>>,
    api_host: &Host,
    spec: &Spec,
) -> Option<Recorded> {
    notes(presence, api_host, spec).into_iter().find(|recorded| recorded.is_for(spec.kubernetes.version))
}

/// The first note with exactly the file's version of Kubernetes. In an upgrade from that version, control planes before their
/// turn have such a note. Otherwise the result of [`of_cluster`].
pub(crate) fn of_version<'a>(
    presence: &BTreeMap<&'a str, Presence<'a>>,
    api_host: &Host,
    spec: &Spec,
) -> Option<Recorded> {
    let version = spec.kubernetes.version.to_string();
    let is_of = |noted: &Recorded| noted.0.get("kubernetes") == Some(&version);
    let exact = notes(presence, api_host, spec).into_iter().find(is_of);
    exact.or_else(|| of_cluster(presence, api_host, spec))
}

/// The note of the cluster, whatever its version of Kubernetes is.
pub(crate) fn of_any_version<'a>(
    presence: &BTreeMap<&'a str, Presence<'a>>,
    api_host: &Host,
    spec: &Spec,
) -> Option<Recorded> {
    notes(presence, api_host, spec).into_iter().next()
}

/// The note of a cluster that an upgrade brings to a newer minor version of Kubernetes.
pub(super) fn before_upgrade<'a>(
    presence: &BTreeMap<&'a str, Presence<'a>>,
    api_host: &Host,
    spec: &Spec,
) -> Option<Recorded> {
    let notes = notes(presence, api_host, spec);
    notes.into_iter().find(|recorded| recorded.is_before(spec.kubernetes.version))
}

/// The notes of control planes that have a newer minor version of Kubernetes.
pub(super) fn ahead<'a>(
    presence: &BTreeMap<&'a str, Presence<'a>>,
    api_host: &Host,
    spec: &Spec,
) -> Vec<Recorded> {
    let mut notes = notes(presence, api_host, spec);
    notes.retain(|recorded| recorded.is_after(spec.kubernetes.version));
    notes
}

fn notes<'a>(presence: &BTreeMap<&'a str, Presence<'a>>, api_host: &Host, spec: &Spec) -> Vec<Recorded> {
    let note = |host: &Host| match presence.get(host.name.as_str()) {
        Some(Presence::Probed(facts)) => facts.answer(&RECORDED).answered(),
        _ => None,
    };
    std::iter::once(api_host).chain(spec.control_planes()).filter_map(note).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_note_is_read_as_it_is_written() {
        let versions = Versions::for_kubernetes(KubeVersion::default(), &Components::default()).unwrap();
        let recorded = Recorded::of(&versions);
        assert_eq!(Recorded::parse(&recorded.text()), Some(recorded.clone()));
        assert_eq!(Recorded::parse(""), Some(Recorded::default()));
        assert_eq!(Recorded::parse("torn"), None);
        let again =
            Versions::for_kubernetes(versions.kubernetes, &recorded.behind(&Components::default())).unwrap();
        assert_eq!(again, versions, "every component is in the note");
    }
}
