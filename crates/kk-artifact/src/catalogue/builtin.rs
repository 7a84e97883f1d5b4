//! Reads `artifacts/<component>.yaml`, compiled in.

use std::collections::BTreeMap;

use kk_config::Arch;
use semver::Version;
use serde::Deserialize;

use super::{Entry, Manifests};
use crate::artifact::Content;
use crate::{Component, Sha256Sum};

macro_rules! files {
    ($($name:literal),* $(,)?) => {
        &[$(($name, include_str!(concat!("../../../../artifacts/", $name, ".yaml")))),*]
    };
}

/// Name and text of the file of each binary and manifest.
const FILES: &[(&str, &str)] = files![
    "kubeadm",
    "kubelet",
    "kubectl",
    "etcd",
    "containerd",
    "runc",
    "cni-plugins",
    "crictl",
    "helm",
    "registry",
    "calico",
];

/// The format of the file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    url: String,
    program: Option<String>,
    members: Option<BTreeMap<String, String>>,
    executables: Option<Place>,
    published: Option<String>,
    sha256: ByArch,
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum Place {
    Top,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ByArch {
    amd64: BTreeMap<Version, Sha256Sum>,
    arm64: BTreeMap<Version, Sha256Sum>,
}

/// The entries of all binaries.
pub(super) fn entries() -> BTreeMap<Component, Entry> {
    Component::programs().map(|component| (component, entry(component, text(component)))).collect()
}

/// The entries of all manifests.
pub(super) fn manifests() -> BTreeMap<Component, Manifests> {
    let entry = |component: Component| {
        serde_saphyr::from_str(text(component))
            .unwrap_or_else(|e| panic!("artifacts/{component}.yaml, which is checked by a test: {e}"))
    };
    Component::manifests().map(|component| (component, entry(component))).collect()
}

fn text(component: Component) -> &'static str {
    let file = FILES.iter().find(|(name, _)| *name == component.name());
    file.expect("every program and manifest has a file, which a test checks").1
}

fn entry(component: Component, text: &str) -> Entry {
    let file: File = serde_saphyr::from_str(text)
        .unwrap_or_else(|e| panic!("artifacts/{component}.yaml, which is checked by a test: {e}"));
    let content = match (file.program, file.members, file.executables) {
        (Some(name), None, None) => Content::Program(name),
        (None, Some(members), None) => Content::Members(members.into_iter().collect()),
        (None, None, Some(Place::Top)) => Content::Executables,
        _ => panic!("artifacts/{component}.yaml: one of program, members and executables is needed"),
    };
    let sums = BTreeMap::from([(Arch::Amd64, file.sha256.amd64), (Arch::Arm64, file.sha256.arm64)]);
    Entry { url: file.url, content, published: file.published, sums }
}
