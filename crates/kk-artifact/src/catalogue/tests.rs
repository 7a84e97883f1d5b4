//! The built-in data is consistent, and every query returns the right file or a helpful refusal.

use kk_config::{Components, KubeVersion, NEWEST_MINOR, OLDEST_MINOR};

use super::*;
use crate::Versions;

const ARCHES: [Arch; 2] = Arch::ALL;
/// The checksum of empty input.
const SUM: &str = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

#[test]
fn every_known_version_resolves_to_a_tls_address_with_its_sum() {
    let catalogue = Catalogue::builtin();
    for component in Component::programs() {
        for arch in ARCHES {
            let versions: Vec<_> = catalogue.versions(component, arch).collect();
            assert!(!versions.is_empty(), "{component}");
            for version in versions {
                let artifact = catalogue.resolve(component, &version.to_string(), arch).unwrap();
                let address = artifact.address.to_string();
                assert!(artifact.address.is_tls() && !address.contains(['{', '}']), "{address}");
                assert!(
                    address.contains(&version.to_string()) && address.contains(arch.as_str()),
                    "{address}"
                );
                assert!(matches!(artifact.checksum, Checksum::Known(_)));
            }
        }
    }
}

#[test]
fn both_architectures_have_the_same_versions_and_never_the_same_sum() {
    for (component, entry) in Catalogue::builtin().entries {
        let (amd64, arm64) = (&entry.sums[&Arch::Amd64], &entry.sums[&Arch::Arm64]);
        assert!(amd64.keys().eq(arm64.keys()), "{component}");
        let mut sums: Vec<_> = amd64.values().chain(arm64.values()).map(Sha256Sum::as_str).collect();
        sums.sort_unstable();
        sums.dedup();
        assert_eq!(sums.len(), amd64.len() * 2, "{component}: a sum is there twice");
    }
}

#[test]
fn every_default_version_has_a_known_sum() {
    let catalogue = Catalogue::builtin();
    for minor in OLDEST_MINOR..=NEWEST_MINOR {
        let versions =
            Versions::for_kubernetes(KubeVersion { major: 1, minor, patch: 0 }, &Components::default())
                .unwrap();
        // Kubernetes 1.37 is newer than the data; its binaries are verified by their published checksums.
        let has_sum = |component: &Component| minor < 37 || component.version_key() != "kubernetes";
        for component in Component::programs().filter(has_sum) {
            for arch in ARCHES {
                let artifact = catalogue.resolve(component, &versions.of(component), arch).unwrap();
                assert!(matches!(artifact.checksum, Checksum::Known(_)), "1.{minor}: {artifact}");
            }
        }
    }
}

#[test]
fn the_manifests_of_every_default_version_are_known() {
    let catalogue = Catalogue::builtin();
    for minor in OLDEST_MINOR..=NEWEST_MINOR {
        let versions =
            Versions::for_kubernetes(KubeVersion { major: 1, minor, patch: 0 }, &Components::default())
                .unwrap();
        for component in Component::manifests() {
            let files = catalogue.manifests(component, &versions.of(component)).unwrap();
            assert!(!files.is_empty(), "1.{minor}: {component}");
        }
    }
}

#[test]
fn every_manifest_has_the_same_versions_and_never_the_same_checksum() {
    for (component, manifests) in Catalogue::builtin().manifests {
        let versions: Vec<Vec<_>> = manifests.sums.values().map(|sums| sums.keys().collect()).collect();
        assert!(versions.iter().all(|of| *of == versions[0]), "{component}");
        let all: Vec<_> = manifests.sums.values().flat_map(BTreeMap::values).collect();
        let distinct: std::collections::BTreeSet<_> = all.iter().collect();
        assert_eq!(all.len(), distinct.len(), "{component}");
    }
}

#[test]
fn a_manifest_is_read_from_upstream_or_from_the_mirror() {
    let url = "https://raw.githubusercontent.com/projectcalico/calico/v3.31.7/manifests/calico-typha.yaml";
    let sum = "86bdaabf6098f98320773a257f3408f70a8654e9ccf26a48e717ef2d028d71b7";
    for mirror in [None, Some("http://user:secret@mirror.example/files")] {
        let catalogue = Catalogue::builtin();
        let catalogue = mirror.map_or(Ok(catalogue.clone()), |base| catalogue.with_mirror(base)).unwrap();
        let source = catalogue.manifest(Component::Calico, "v3.31.7", "calico-typha.yaml").unwrap();
        let (url, mirror, sha256) = (url.to_owned(), mirror.map(kk_config::Secret::new), sum.to_owned());
        assert!(!format!("{source:?}").contains("secret@"), "{source:?}");
        assert_eq!(source.to_string(), url, "the address of the mirror may contain a password");
        assert_eq!(source, kk_config::ManifestSource::Published { url, mirror, sha256 });
    }
}

#[test]
fn a_manifest_without_a_known_checksum_is_refused_until_the_user_gives_it() {
    let catalogue = Catalogue::builtin();
    let error = catalogue.manifest(Component::Calico, "3.99.0", "calico.yaml").unwrap_err();
    let said = format!("{error}; {}", error.hint().unwrap());
    for words in ["calico.yaml of calico v3.99.0", "3.32.1", "`calico: {calico.yaml: {3.99.0: <SHA-256>}}`"] {
        assert!(said.contains(words), "{said}");
    }
    let own = format!("calico: {{calico.yaml: {{3.99.0: {SUM}}}}}");
    let catalogue = catalogue.with_user("own.yaml", &own).unwrap();
    assert!(catalogue.manifest(Component::Calico, "3.99.0", "calico.yaml").is_ok());
    assert!(catalogue.manifest(Component::Calico, "3.99.0", "calico-typha.yaml").is_err());
    for (text, words) in [
        (format!("calico: {{amd64: {{3.99.0: {SUM}}}}}"), "`amd64` is not a manifest of it"),
        (format!("etcd: {{calico.yaml: {{3.99.0: {SUM}}}}}"), "`calico.yaml` is not an architecture"),
    ] {
        let error = Catalogue::builtin().with_user("own.yaml", &text).unwrap_err().to_string();
        assert!(error.contains(words), "{error}");
    }
}

#[test]
fn the_default_kubernetes_version_is_known() {
    let catalogue = Catalogue::builtin();
    let default = KubeVersion::default().to_string();
    for component in [Component::Kubeadm, Component::Kubelet, Component::Kubectl] {
        let artifact = catalogue.resolve(component, &default, Arch::Amd64).unwrap();
        assert!(matches!(artifact.checksum, Checksum::Known(_)));
    }
}

/// The script finds the default version and its checksum in files of the checkout.
#[test]
fn the_image_of_shell_operator_gets_kubectl_in_the_default_version() {
    let version = KubeVersion::default().to_string();
    let kubectl = Catalogue::builtin().resolve(Component::Kubectl, &version, Arch::Amd64).unwrap();
    let image = tempfile::tempdir().unwrap();
    let script = "dpkg() { echo amd64; }; curl() { return 7; }; export -f dpkg curl; \
                  exec bash deploy/image/files.sh \"$1\" Cargo.toml";
    let output = std::process::Command::new("bash")
        .args(["-c", script, "bash"])
        .arg(image.path())
        .current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
        .env_remove("KUBECTL")
        .env_remove("KUBECTL_VERSION")
        .output()
        .unwrap();
    let errors = String::from_utf8(output.stderr).unwrap();
    assert!(errors.starts_with(&format!("downloading {}\n", kubectl.address)), "{errors}");
}

#[test]
fn resolves_to_upstreams_address() {
    let gh = "https://github.com";
    for (component, version, arch, expected) in [
        (
            Component::Kubelet,
            "v1.36.0",
            Arch::Arm64,
            "https://dl.k8s.io/release/v1.36.0/bin/linux/arm64/kubelet",
        ),
        (
            Component::Etcd,
            "3.6.14",
            Arch::Amd64,
            &format!("{gh}/etcd-io/etcd/releases/download/v3.6.14/etcd-v3.6.14-linux-amd64.tar.gz"),
        ),
        (
            Component::Containerd,
            "2.3.4",
            Arch::Amd64,
            &format!(
                "{gh}/containerd/containerd/releases/download/v2.3.4/containerd-2.3.4-linux-amd64.tar.gz"
            ),
        ),
        (
            Component::Runc,
            "v1.4.3",
            Arch::Arm64,
            &format!("{gh}/opencontainers/runc/releases/download/v1.4.3/runc.arm64"),
        ),
        (
            Component::CniPlugins,
            "1.9.1",
            Arch::Amd64,
            &format!(
                "{gh}/containernetworking/plugins/releases/download/v1.9.1/cni-plugins-linux-amd64-v1.9.1.tgz"
            ),
        ),
        (
            Component::Crictl,
            "1.36.0",
            Arch::Amd64,
            &format!(
                "{gh}/kubernetes-sigs/cri-tools/releases/download/v1.36.0/crictl-v1.36.0-linux-amd64.tar.gz"
            ),
        ),
        (Component::Helm, "3.18.5", Arch::Arm64, "https://get.helm.sh/helm-v3.18.5-linux-arm64.tar.gz"),
    ] {
        let artifact = Catalogue::builtin().resolve(component, version, arch).unwrap();
        assert_eq!(artifact.address.to_string(), expected);
    }
}

#[test]
fn archive_members_carry_the_version() {
    let artifact = Catalogue::builtin().resolve(Component::Etcd, "3.6.14", Arch::Arm64).unwrap();
    let Content::Members(members) = artifact.content else { panic!("etcd comes as an archive") };
    assert!(members.contains(&("etcd-v3.6.14-linux-arm64/etcdctl".into(), "etcdctl".into())));
}

#[test]
fn a_kubernetes_newer_than_the_data_is_taken_with_its_published_sum_over_tls_only() {
    let upstream = Catalogue::builtin();
    let over_tls = upstream.clone().with_mirror("https://m.example/k").unwrap();
    let in_the_open = upstream.clone().with_mirror("http://m.example").unwrap();
    for (catalogue, expected) in [
        (upstream, Some("https://dl.k8s.io/release/v1.37.1/bin/linux/amd64/kubeadm.sha256")),
        (over_tls, Some("https://m.example/k/dl.k8s.io/release/v1.37.1/bin/linux/amd64/kubeadm.sha256")),
        (in_the_open, None),
    ] {
        let checksum =
            catalogue.resolve(Component::Kubeadm, "v1.37.1", Arch::Amd64).map(|found| found.checksum);
        match (checksum, expected) {
            (Ok(Checksum::Published(address)), Some(expected)) => assert_eq!(address.to_string(), expected),
            (Err(error), None) => assert!(error.to_string().contains("m.example is not trusted"), "{error}"),
            (other, expected) => panic!("{other:?} instead of {expected:?}"),
        }
    }
}

#[test]
fn an_unknown_version_is_refused_with_the_nearest_known_ones_and_a_way_out() {
    let error = Catalogue::builtin().resolve(Component::Etcd, "3.6.99", Arch::Arm64).unwrap_err();
    assert_eq!(
        error.to_string(),
        "no SHA-256 is known for etcd v3.6.99 for arm64; known are 3.6.12, 3.6.13, 3.6.14"
    );
    assert!(error.hint().unwrap().contains("`etcd: {arm64: {3.6.99: <SHA-256>}}`"));
    for version in ["", "latest", "3.6", "3.6.x", "../../etc/passwd"] {
        let error = Catalogue::builtin().resolve(Component::Etcd, version, Arch::Amd64).unwrap_err();
        assert!(matches!(error, Error::InvalidVersion { .. }), "{version}: {error}");
    }
}

#[test]
fn the_users_sums_win_and_add() {
    let text = format!(
        "kubeadm: {{amd64: {{v1.36.0: {SUM}}}}}\netcd:\n  arm64:\n    3.7.0: {}\n",
        SUM.to_uppercase()
    );
    let catalogue = Catalogue::builtin().with_user("own.yaml", &text).unwrap();
    for (component, version, arch, own) in [
        (Component::Kubeadm, "1.36.0", Arch::Amd64, true),
        (Component::Kubeadm, "1.36.0", Arch::Arm64, false),
        (Component::Etcd, "3.7.0", Arch::Arm64, true),
    ] {
        let checksum = catalogue.resolve(component, version, arch).unwrap().checksum;
        assert_eq!(checksum == Checksum::Known(SUM.parse().unwrap()), own, "{component} {arch:?}");
    }
}

#[test]
fn a_sum_may_look_like_a_number_and_a_catalogue_may_be_empty() {
    let digits = ["1".repeat(64), "0".repeat(64), format!("1e{}", "1".repeat(62))];
    for sum in &digits {
        let text = format!("runc: {{amd64: {{9.9.9: {sum}}}}}");
        let catalogue = Catalogue::builtin().with_user("own.yaml", &text).unwrap();
        let artifact = catalogue.resolve(Component::Runc, "9.9.9", Arch::Amd64).unwrap();
        assert_eq!(artifact.checksum, Checksum::Known(sum.parse().unwrap()));
    }
    for text in ["", "# nothing yet\n", "{}", "kubeadm: {}"] {
        Catalogue::builtin().with_user("own.yaml", text).unwrap();
    }
}

#[test]
fn every_mistake_in_the_users_catalogue_is_named_with_its_place() {
    let text = format!(
        "kubadm:\n  amd64:\n    1.36.0: {SUM}\netcd:\n  x86: {{3.7.0: {SUM}}}\n  arm64:\n    3.7: abc\n"
    );
    let error = Catalogue::builtin().with_user("own.yaml", &text).unwrap_err().to_string();
    for expected in [
        "`kubadm` is not a component\n --> own.yaml:1:1",
        "`x86` is not an architecture\n --> own.yaml:5:3",
        "`3.7` is not a version\n --> own.yaml:7:5",
        "`abc` is not a SHA-256: 64 hexadecimal digits are needed\n --> own.yaml:7:10",
        "4 errors",
    ] {
        assert!(error.contains(expected), "no {expected} in\n{error}");
    }
}

#[test]
fn a_version_that_is_there_with_and_without_its_v_is_refused() {
    let text = format!("etcd:\n  amd64:\n    3.7.0: {SUM}\n    v3.7.0: {}\n", SUM.replace('e', "f"));
    let error = Catalogue::builtin().with_user("own.yaml", &text).unwrap_err().to_string();
    assert!(error.contains("`v3.7.0` is there twice\n --> own.yaml:4:5"), "{error}");
}

#[test]
fn what_is_no_catalogue_at_all_is_refused_with_its_place() {
    for (text, place) in [
        ("kubeadm: [", "own.yaml:1"),
        ("- kubeadm", "own.yaml:1:1"),
        ("kubeadm:\n  amd64: 1.36.0\n", "own.yaml:2:10"),
        (&format!("etcd:\n  amd64:\n    3.7.0: {SUM}\n    3.7.0: {SUM}\n"), "own.yaml:4:5"),
    ] {
        let error = Catalogue::builtin().with_user("own.yaml", text).unwrap_err().to_string();
        assert!(error.contains(place), "no {place} in\n{error}");
        assert!(error.contains("hint: the form is"), "{error}");
    }
}

#[test]
fn a_version_of_manifests_is_known_if_every_file_has_a_checksum() {
    let sum = "a".repeat(64);
    let version = Version::new(3, 99, 0);
    for (files, known) in [
        (&["calico.yaml"][..], false),
        (&["calico-typha.yaml"], false),
        (&["calico.yaml", "calico-typha.yaml"], true),
    ] {
        let files: Vec<String> = files.iter().map(|file| format!("{file}: {{3.99.0: {sum}}}")).collect();
        let own = format!("calico: {{{}}}", files.join(", "));
        let catalogue = Catalogue::builtin().with_user("own", &own).unwrap();
        assert_eq!(catalogue.knows(Component::Calico, &version, Arch::Amd64), known, "{own}");
    }
}
