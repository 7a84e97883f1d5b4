//! Clusters from a bundle: the bundle supplies the versions, and its gaps are reported before the first change.

use std::collections::BTreeSet;

use kk_artifact::{Component, bundle::Bundle};
use kk_config::{Arch, ImageName};
use kk_engine::{Finding, Severity};

use crate::{
    base::{artifacts::NOT_IN_BUNDLE, error::BuildError, requirements::Requirements},
    model::{
        cluster::Cluster,
        inputs::{Inputs, wanted_programs},
    },
};

/// The user's own images in a bundle, each with the name by which hosts know it: runtimes search for an image with a digest by a
/// name without a tag.
pub(crate) fn own_images(bundle: &Bundle) -> Vec<(String, ImageName)> {
    let with_name = |image: ImageName| match &image.digest {
        Some(digest) => (format!("{}@{digest}", image.repository()), image),
        None => (image.to_string(), image),
    };
    bundle.own_images().into_iter().map(with_name).collect()
}

/// The name in the bundle of an image that hosts know by this name.
pub(crate) fn upstream(cluster: &Cluster, bundle: &Bundle, name: &str) -> Option<ImageName> {
    let own = || own_images(bundle).into_iter().find(|(own, _)| own == name).map(|(_, image)| image);
    cluster.images.upstream(name).or_else(own)
}

/// The needs of the hosts that the bundle does not contain.
pub(crate) fn missing(inputs: &Inputs) -> Vec<Finding> {
    lacking(inputs, &inputs.requirements, inputs.programs.keys().copied()).iter().map(finding).collect()
}

/// The part of [`missing`] for hosts that run no images.
pub(crate) fn missing_programs(inputs: &Inputs) -> Vec<Finding> {
    lacking_programs(inputs, inputs.programs.keys().copied()).iter().map(finding).collect()
}

/// One warning for binaries that are neither in the bundle nor on the control machine. Only a rollback needs them.
pub(crate) fn missing_to_put_back(inputs: &Inputs) -> Option<Finding> {
    let absent =
        inputs.programs.iter().filter(|(_, (_, files))| files.is_none()).map(|(program, _)| *program);
    let missing: Vec<String> = lacking_programs(inputs, absent).into_iter().collect();
    (!missing.is_empty()).then(|| cannot_put_back(&format!("not in the bundle: {}", missing.join(", "))))
}

/// The warning with this reason.
pub(crate) fn cannot_put_back(why: &str) -> Finding {
    Finding {
        severity: Severity::Warning,
        host: None,
        message: format!("a host whose turn fails cannot be rolled back; {why}"),
        hint: "make the bundle with both versions: kk create manifest -f FILE --with-kubernetes OLD,NEW"
            .into(),
    }
}

fn finding(part: &String) -> Finding {
    Finding {
        severity: Severity::Error,
        host: None,
        message: format!("{part} is not in the bundle"),
        hint: NOT_IN_BUNDLE.into(),
    }
}

/// The error for a binary that no catalogue contains: it lists everything that the bundle lacks, if it lacks anything.
pub(crate) fn name_all(cluster: &Cluster, requirements: &Requirements, error: BuildError) -> BuildError {
    let missing = Vec::from_iter(lacking(cluster, requirements, wanted_programs(cluster, requirements)));
    if missing.is_empty() {
        return error;
    }
    BuildError::config(format!("not in the bundle: {}", missing.join(", ")), NOT_IN_BUNDLE)
}

/// The binaries and the images of hosts that the bundle does not contain.
fn lacking(
    cluster: &Cluster,
    requirements: &Requirements,
    programs: impl IntoIterator<Item = (Component, Arch)>,
) -> BTreeSet<String> {
    let mut missing = lacking_programs(cluster, programs);
    let Some(bundle) = &cluster.options.bundle else { return missing };
    for (host, _) in cluster.nodes() {
        let arch = cluster.arch(host);
        for (_, name) in requirements.images.get(&host.name).into_iter().flatten() {
            let there = upstream(cluster, bundle, name).is_some_and(|one| bundle.image(&one, arch).is_some());
            if !there {
                missing.insert(format!("{name} for {arch}"));
            }
        }
    }
    missing
}

fn lacking_programs(
    cluster: &Cluster,
    programs: impl IntoIterator<Item = (Component, Arch)>,
) -> BTreeSet<String> {
    let mut missing = BTreeSet::new();
    let Some(bundle) = &cluster.options.bundle else { return missing };
    for (component, arch) in programs {
        let version = cluster.versions.of(component);
        if !bundle.has(component, &version, arch) {
            missing.insert(format!("{component} v{version} for {arch}"));
        }
    }
    missing
}

#[cfg(test)]
mod tests {
    use std::{path::Path, sync::Arc};

    use kk_artifact::Catalogue;
    use kk_artifact::bundle::{BundleIndex, FilePart, FileParts, ImagePart, PlatformPart, ProgramPart};
    use kk_config::Arch;
    use kk_config::Spec;
    use kk_engine::Plan;

    use super::*;
    use crate::base::artifacts::choose;
    use crate::{
        base::requirements::IMAGES, capabilities::versions::RECORDED, commands::create_cluster,
        model::options::Options, testing,
    };

    /// A bundle for hosts of amd64, without the entries of these names.
    fn bundle(manifest: &kk_config::Manifest, without: &[&str]) -> Bundle {
        Bundle::with_index(Path::new("x.tar.zst"), index(manifest, without))
    }

    fn index(manifest: &kk_config::Manifest, without: &[&str]) -> BundleIndex {
        let mut index = BundleIndex {
            format: 1,
            name: String::new(),
            programs: Vec::new(),
            images: Vec::new(),
            packages: Vec::new(),
            charts: Vec::new(),
            manifests: Vec::new(),
            files: FileParts::default(),
        };
        let digest = format!("sha256:{}", "0".repeat(64));
        for component in Component::programs().filter(|component| !without.contains(&component.name())) {
            let kubernetes = manifest.kubernetes.iter().map(|version| version.to_string()[1..].to_owned());
            let versions = match manifest.components.get(component.version_key()) {
                Some(versions) => versions.iter().cloned().collect(),
                None => kubernetes.collect::<Vec<_>>(),
            };
            for version in versions {
                let (name, arch) = (component.name().to_owned(), "amd64".to_owned());
                index.programs.push(ProgramPart { name, version, arch, path: String::new() });
            }
        }
        for name in manifest.images.iter().map(ToString::to_string) {
            if without.iter().any(|word| name.contains(word)) {
                continue;
            }
            let (digest, media_type) = (digest.clone(), "m".to_owned());
            let platform =
                PlatformPart { arch: "amd64".into(), digest: digest.clone(), media_type, blobs: Vec::new() };
            index.images.push(ImagePart { name, digest, media_type: "m".into(), platforms: vec![platform] });
        }
        let path = format!("blobs/{}", digest.replace(':', "/"));
        index.files.push(FilePart { path, size: 7, sha256: "0".repeat(64) });
        index
    }

    async fn manifest(spec: &Spec) -> kk_config::Manifest {
        let directory = tempfile::tempdir().unwrap();
        testing::session(spec.clone(), directory.path()).manifest(&[Arch::Amd64].into()).await.unwrap()
    }

    #[tokio::test]
    async fn versions_are_those_of_the_bundle_and_the_file_wins() {
        let mut spec = testing::sample("all-in-one.yaml");
        let mut wanted = manifest(&spec).await;
        let default = |key: &str| wanted.components[key].first().unwrap().clone();
        let (runc, crictl, cni) = (default("runc"), default("crictl"), default("cni"));
        wanted.components.insert("etcd", ["3.5.9".to_owned()].into());
        wanted.components.insert("runc", [runc.clone(), "1.1.8".to_owned()].into());
        wanted.components.insert("crictl", ["1.0.0".to_owned(), "1.1.0".to_owned()].into());
        wanted.components.insert("cni", ["99.0.0".to_owned()].into());
        spec.components.containerd = Some("9.9.9".into());
        let bundle = bundle(&wanted, &["coredns"]);
        let versions = choose(&spec, &spec.components, Some(&bundle), &Catalogue::builtin()).unwrap();
        let of = |component| versions.of(component);
        assert_eq!(of(Component::Etcd), "3.5.9", "the only one");
        assert_eq!(of(Component::Runc), runc, "the default is there");
        assert_eq!(of(Component::Crictl), crictl, "nobody can choose");
        assert_eq!(of(Component::CniPlugins), cni, "a bundle alone does not make a version trusted");
        assert_eq!(of(Component::Containerd), "9.9.9", "the file says so");
    }

    /// A binary that only the bundle contains.
    #[tokio::test]
    async fn a_sum_that_only_the_bundle_knows_is_used_when_the_file_asks_for_it() {
        let mut spec = testing::sample("all-in-one.yaml");
        let mut index = index(&manifest(&spec).await, &["runc"]);
        let (name, version, arch) = ("runc".to_owned(), "99.0.0".to_owned(), "amd64".to_owned());
        let path = "programs/runc/v99.0.0/amd64/runc.amd64".to_owned();
        index.files.push(FilePart { path: path.clone(), size: 7, sha256: "1".repeat(64) });
        index.programs.push(ProgramPart { name, version, arch, path });
        let bundle = Some(Arc::new(Bundle::with_index(Path::new("x.tar.zst"), index)));
        let directory = tempfile::tempdir().unwrap();
        for pin in [None, Some("99.0.0".to_owned())] {
            spec.components.runc = pin.clone();
            let options = Options { bundle: bundle.clone(), ..Options::default() };
            let session = testing::session_with(spec.clone(), directory.path(), options);
            let fresh = testing::fresh(&spec);
            let create = session.plan_create(&fresh).await.unwrap();
            let findings = create.findings.into_iter().map(|finding| finding.message);
            let missing = findings.filter(|message| message.contains("is not in the bundle"));
            let said: Vec<String> = missing.chain(create.notes).collect();
            assert_eq!(said.len(), 1, "{said:?}");
            let expected = match pin {
                None => "is not in the bundle",
                Some(_) => {
                    "runc v99.0.0 for amd64: no catalogue contains its checksum; the checksum in the bundle \
                     is used"
                }
            };
            assert!(said[0].contains(expected), "{said:?}");
        }
    }

    #[tokio::test]
    async fn a_version_that_nobody_knows_does_not_hide_what_else_is_missing() {
        let mut spec = testing::sample("all-in-one.yaml");
        let wanted = manifest(&spec).await;
        spec.components.runc = Some("99.0.0".into());
        let options = Options { bundle: Some(Arc::new(bundle(&wanted, &["coredns"]))), ..Options::default() };
        let directory = tempfile::tempdir().unwrap();
        // No published checksum of this mirror is trusted, so no source knows the version.
        spec.download.mirror = Some("http://192.0.2.1".into());
        let session = testing::session_with(spec.clone(), directory.path(), options);
        let fresh = testing::fresh(&spec);
        let error = session.create_inputs(&fresh).await.err().unwrap().to_string();
        assert!(error.contains("runc v99.0.0") && error.contains("coredns/coredns"), "{error}");
    }

    #[tokio::test]
    async fn a_bundle_that_lacks_parts_is_refused_by_their_names() {
        let spec = testing::sample("three-nodes.yaml");
        let wanted = manifest(&spec).await;
        for (without, expected) in
            [(&[][..], &[][..]), (&["kubectl", "coredns"], &["kubectl v", "coredns/coredns:v"])]
        {
            let directory = tempfile::tempdir().unwrap();
            let bundle = Some(Arc::new(bundle(&wanted, without)));
            let options = Options { bundle, ..Options::default() };
            let session = testing::session_with(spec.clone(), directory.path(), options);
            let fresh = testing::fresh(&spec);
            let inputs = session.create_inputs(&fresh).await.unwrap();
            let found = missing(&inputs);
            assert_eq!(found.len(), expected.len(), "{found:?}");
            for part in expected {
                assert!(found.iter().any(|finding| finding.message.contains(part)), "{part}: {found:?}");
            }
        }
    }

    #[tokio::test]
    async fn a_bundle_without_the_old_version_is_warned_of_and_one_with_it_is_not() {
        let spec = testing::sample("three-nodes.yaml");
        let wanted = manifest(&spec).await;
        let directory = tempfile::tempdir().unwrap();
        for (without, expected) in [(&[][..], None), (&["kubelet"], Some("kubelet v"))] {
            let options = Options { bundle: Some(Arc::new(bundle(&wanted, without))), ..Options::default() };
            let session = testing::session_with(spec.clone(), directory.path(), options);
            let found = session.missing_to_put_back(&testing::fresh(&spec)).await;
            assert_eq!(found.is_some(), expected.is_some(), "{found:?}");
            assert!(found.is_none_or(|found| found.message.contains(expected.unwrap())));
        }
        let online = testing::session(spec.clone(), directory.path());
        assert!(online.missing_to_put_back(&testing::fresh(&spec)).await.is_none());
    }

    /// The changes that a create from a bundle makes to images on a host whose runtime lists these images.
    async fn changes(index: BundleIndex, listed: &str) -> Vec<String> {
        let spec = testing::sample("all-in-one.yaml");
        let directory = tempfile::tempdir().unwrap();
        let bundle = Some(Arc::new(Bundle::with_index(Path::new("x.tar.zst"), index)));
        let session =
            testing::session_with(spec.clone(), directory.path(), Options { bundle, ..Options::default() });
        let mut fresh = testing::fresh(&spec);
        fresh.facts.values_mut().for_each(|facts| facts.reply(&IMAGES, listed.to_owned()));
        let inputs = session.create_inputs(&fresh).await.unwrap();
        assert!(missing(&inputs).is_empty());
        let plan = Plan::new(create_cluster::pipeline(&inputs).unwrap(), &fresh.facts).unwrap();
        let changes = plan.changes().into_iter().flat_map(|task| task.changes);
        changes.filter(|change| change.starts_with("import ") || change.starts_with("pull ")).collect()
    }

    #[tokio::test]
    async fn images_are_imported_and_none_is_pulled() {
        let wanted = manifest(&testing::sample("all-in-one.yaml")).await;
        let changes = changes(index(&wanted, &[]), "").await;
        assert!(changes.len() >= 7, "{changes:?}");
        assert!(!changes.iter().any(|change| change.starts_with("pull ")), "{changes:?}");
    }

    #[tokio::test]
    async fn own_images_of_a_bundle_are_imported_and_other_versions_of_the_cluster_s_are_not() {
        let mut wanted = manifest(&testing::sample("all-in-one.yaml")).await;
        let digest = format!("sha256:{}", "7".repeat(64));
        let own = ["docker.io/team/app:v1".to_owned(), format!("quay.io/team/db:1@{digest}")];
        let other = "registry.k8s.io/kube-apiserver:v1.0.0".to_owned();
        wanted.images.extend(own.iter().chain([&other]).map(|name| name.parse::<ImageName>().unwrap()));
        let changes = changes(index(&wanted, &[]), "").await;
        for (change, expected) in [
            ("import docker.io/team/app:v1".to_owned(), true),
            (format!("import quay.io/team/db@{digest}"), true),
            (format!("import {other}"), false),
        ] {
            assert_eq!(changes.contains(&change), expected, "{change}: {changes:?}");
        }
    }

    #[tokio::test]
    async fn what_an_image_holds_decides_whether_it_is_there() {
        let spec = testing::sample("all-in-one.yaml");
        let mut wanted = manifest(&spec).await;
        wanted.images.insert("docker.io/team/app:v1".parse().unwrap());
        let digest = |digit: &str| format!("sha256:{}", digit.repeat(64));
        let (root, manifest, config, other) = (digest("1"), digest("2"), digest("3"), digest("4"));
        let mut index = index(&wanted, &[]);
        let image = index.images.iter_mut().find(|image| image.name.contains("team/app")).unwrap();
        image.digest.clone_from(&root);
        image.platforms[0].digest.clone_from(&manifest);
        image.platforms[0].blobs = vec![config.clone()];
        let name = "docker.io/team/app:v1";
        for (listed, there) in [
            (String::new(), false),
            (format!("{name} {root}"), true),
            (format!("{name} {manifest}"), true),
            (format!("{name} {other}"), false),
            (format!("{name} {other}\n{config} {other}"), true),
            (format!("{name} {other}\n{config} {manifest}"), false),
            (name.to_owned(), false),
        ] {
            let changes = changes(index.clone(), &listed).await;
            let import = changes.contains(&format!("import {name}"));
            assert_eq!(import, !there, "{listed}: {changes:?}");
        }
    }

    /// A cluster that was created from another bundle: its running versions stay, and this bundle lacks them.
    #[tokio::test]
    async fn a_running_cluster_keeps_its_versions_whatever_the_bundle_has() {
        let spec = testing::sample("all-in-one.yaml");
        let wanted = manifest(&spec).await;
        let default = wanted.components["etcd"].first().unwrap().clone();
        let directory = tempfile::tempdir().unwrap();
        let plan = async |pin: Option<&str>| {
            let mut spec = spec.clone();
            spec.components.etcd = pin.map(str::to_owned);
            let minor = spec.kubernetes.version.minor;
            let mut probed = testing::fresh(&spec);
            let note = format!("kubernetes: \"v1.{minor}.0\"\netcd: \"3.6.1\"\n");
            probed.facts.values_mut().for_each(|facts| facts.reply(&RECORDED, note.clone()));
            let options =
                Options { bundle: Some(Arc::new(bundle(&wanted, &["crictl"]))), ..Options::default() };
            let session = testing::session_with(spec, directory.path(), options);
            let inputs = session.create_inputs(&probed).await.unwrap();
            let found: Vec<String> = missing(&inputs).into_iter().map(|finding| finding.message).collect();
            (inputs.versions.of(Component::Etcd), found.join("\n"))
        };
        let (etcd, found) = plan(None).await;
        assert_eq!(etcd, "3.6.1", "the cluster's, not the bundle's");
        assert!(found.contains("etcd v3.6.1") && found.contains("crictl"), "{found}");
        let (etcd, found) = plan(Some(&default)).await;
        assert!(etcd == default && !found.contains("etcd"), "the file's: {found}");
    }
}
