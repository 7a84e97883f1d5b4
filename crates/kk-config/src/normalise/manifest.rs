//! Converts the document of a Manifest into the contents of its bundle.

use std::collections::{BTreeMap, BTreeSet};

use super::operating_systems::operating_systems;
use super::{kubernetes, registry, source};
use crate::findings::{At, Findings};
use crate::spec::{Arch, ImageName, Manifest, Registry};
use crate::v1alpha2::{self, API_VERSION, ManifestComponent, ManifestComponents};

/// Checks the whole document.
pub(crate) fn manifest(doc: v1alpha2::Manifest, at: At<'_>, out: &mut Findings<'_>) -> Manifest {
    if !doc.api_version.is_empty() && doc.api_version != API_VERSION {
        let message = format!("apiVersion `{}` is not known", doc.api_version);
        out.error(at.key("apiVersion"), message, format!("this program reads {API_VERSION}"));
    }
    let (spec, at) = (doc.spec, at.key("spec"));
    warn_of_parts_without_effect(&spec, at, out);
    if spec.arches.is_empty() {
        out.missing(at, "the manifest lists no architecture", "add `arches: [amd64]` under `spec`");
    }
    let mut arches = BTreeSet::new();
    for (i, name) in spec.arches.iter().enumerate() {
        let arch = Arch::from_name(name);
        if arch.is_none() {
            let message = format!("`{name}` is not an architecture that kk knows");
            out.error(at.key("arches").item(i), message, "one of: amd64, arm64");
        }
        arches.extend(arch);
    }
    let mut kubernetes = BTreeSet::new();
    let is_other =
        |one: &v1alpha2::Distribution| one.kind.as_deref().is_some_and(|kind| kind != "kubernetes");
    let only_others = spec.kubernetes_distributions.iter().all(is_other);
    for (i, one) in spec.kubernetes_distributions.iter().enumerate() {
        let at = at.key("kubernetesDistributions").item(i);
        if is_other(one) {
            let message = "only the type `kubernetes` can be installed";
            if only_others {
                out.error(at.key("type"), message, "give a version of the type `kubernetes`");
            } else {
                out.warning(at.key("type"), message, "the bundle is made without this entry");
            }
            continue;
        }
        let known = kubernetes::version(&one.version, at.key("version"), out);
        let stands_in = one.version.parse() != Ok(known);
        if !stands_in && !kubernetes.insert(known) {
            out.error(at, format!("{known} is there twice"), "remove one of them");
        }
    }
    let components = components(spec.components, at.key("components"), out);
    let images = images(&spec.images, at.key("images"), out);
    let charts = source::charts(spec.charts, at.key("charts"), out);
    let manifests = source::manifests(spec.manifests, at.key("manifests"), out);
    let operating_systems =
        operating_systems(spec.operating_systems, &arches, at.key("operatingSystems"), out);
    let is_empty = spec.kubernetes_distributions.is_empty() && components.is_empty() && images.is_empty();
    if is_empty && operating_systems.is_empty() && charts.is_empty() && manifests.is_empty() {
        out.missing(at, "the bundle would be empty", "`kk create manifest` writes one to start from");
    }
    let registry = Registry {
        registry_mirrors: spec.registry.registry_mirrors,
        insecure_registries: spec.registry.insecure_registries,
        auths: spec.registry.auths,
        remote_mirrors: spec.registry.remote_mirrors,
        ..Registry::default()
    };
    registry::check(&registry, at.key("registry"), out);
    let mut download = registry::download(spec.download, at.key("download"), out);
    if download.public_key.take().is_some() {
        out.warning(
            at.key("download").key("publicKey"),
            "publicKey has no effect in a Manifest",
            "set it in the Cluster file that is used with the bundle; sign the bundle with minisign",
        );
    }
    Manifest {
        name: doc.metadata.name,
        arches,
        kubernetes,
        components,
        images,
        charts,
        manifests,
        operating_systems,
        registry,
        download,
    }
}

/// The version of the registry in KubeKey's files.
const KUBEKEY_REGISTRY: &str = "2";

fn components(
    doc: ManifestComponents,
    at: At<'_>,
    out: &mut Findings<'_>,
) -> BTreeMap<&'static str, BTreeSet<String>> {
    let mut all: BTreeMap<&'static str, BTreeSet<String>> = BTreeMap::new();
    let given = [
        ("helm", doc.helm),
        ("cni", doc.cni),
        ("etcd", doc.etcd),
        ("runc", doc.runc),
        ("crictl", doc.crictl),
        ("docker-registry", doc.docker_registry),
        ("calico", doc.calico),
    ];
    for (key, component) in given {
        let Some(ManifestComponent { version: one, versions }) = component else { continue };
        let at = at.key(key);
        if one.is_none() && versions.is_empty() {
            out.missing(at, format!("{key} has no version"), "add `version: …`");
        }
        let one = one.map(|version| (version, at.key("version")));
        let several = versions.into_iter().enumerate();
        let several = several.map(|(i, version)| (version, at.key("versions").item(i)));
        for (text, at) in one.into_iter().chain(several) {
            if key == "docker-registry" && text == KUBEKEY_REGISTRY {
                out.warning(
                    at,
                    "the registry that KubeKey calls 2 is KubeKey's own build",
                    "name a version such as 3.1.2",
                );
                continue;
            }
            all.entry(key).or_default().extend(version(key, &text, at, out));
        }
    }
    for (i, runtime) in doc.container_runtimes.into_iter().enumerate() {
        let at = at.key("containerRuntimes").item(i);
        if runtime.kind.as_deref().is_some_and(|kind| kind != "containerd") {
            let message = "only the container runtime containerd is installed";
            out.warning(at.key("type"), message, "the bundle is made without this entry");
            continue;
        }
        let found = version("containerd", &runtime.version, at.key("version"), out);
        all.entry("containerd").or_default().extend(found);
    }
    all
}

/// Removes the leading v. `None`: an error was reported.
fn version(key: &'static str, text: &str, at: At<'_>, out: &mut Findings<'_>) -> Option<String> {
    let bare = registry::component_version(text);
    if bare.is_none() {
        let message = format!("`{text}` is not a version of {key}");
        out.error(at, message, "give it as it was released, such as 1.2.3");
    }
    bare
}

fn images(texts: &[String], at: At<'_>, out: &mut Findings<'_>) -> BTreeSet<ImageName> {
    let mut images = BTreeSet::new();
    for (i, text) in texts.iter().enumerate() {
        match text.parse::<ImageName>() {
            Err(hint) => out.error(at.item(i), format!("`{text}` is not the full name of an image"), hint),
            Ok(image) => {
                if !images.insert(image) {
                    out.error(at.item(i), format!("`{text}` is there twice"), "remove one of them");
                }
            }
        }
    }
    images
}

fn warn_of_parts_without_effect(spec: &v1alpha2::ManifestSpec, at: At<'_>, out: &mut Findings<'_>) {
    let of = &spec.components;
    let components =
        [("harbor", &of.harbor), ("docker-compose", &of.docker_compose), ("calicoctl", &of.calicoctl)];
    let hint = "kk ignores it";
    for (key, _) in components.into_iter().filter(|(_, component)| component.is_some()) {
        out.warning(
            at.key("components").name(key),
            format!("without effect yet: spec.components.{key}"),
            hint,
        );
    }
}
