//! Bundles with packages: collected by apt from a signed repository with two needed packages and an unneeded one.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use kk_config::{Arch, Manifest, OperatingSystem};

use super::super::*;
use super::compared::{Case, expect_refused};
use super::exports::{Site, WithoutPrograms as _};
use crate::Catalogue;

const REPOSITORY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/repository");
const TOOL: &str = "packages/debian/12/amd64/kk-test-tool_1.0~rc1+x_all.deb";

/// Hosts of Debian that need these packages, of the repository in `dir`.
pub(super) fn system(dir: &str, packages: &[&str]) -> OperatingSystem {
    OperatingSystem {
        id: "debian".into(),
        version: "12".into(),
        arch: Arch::Amd64,
        sources: vec![format!("file:{dir} ./")],
        keyring: Some(format!("{dir}/keyring.gpg")),
        packages: packages.iter().map(|name| (*name).to_owned()).collect(),
    }
}

pub(super) fn manifest(site: &Site) -> Manifest {
    let mut manifest = site.manifest("amd64", "team/app:v1").without_programs();
    manifest.operating_systems.push(system(REPOSITORY, &["kk-test-tool"]));
    manifest
}

#[tokio::test]
async fn packages_come_with_what_they_need_and_are_there_after_an_import() {
    let site = Site::new().await;
    let manifest = manifest(&site);
    let exported = site.export(&manifest, "store", "a.tar.zst").await.unwrap();
    let parts: Vec<_> = exported.index.packages.iter().map(|part| (&*part.name, &*part.version)).collect();
    assert_eq!(parts, [("kk-test-library", "1.1"), ("kk-test-tool", "2:1.0~rc1+x")]);
    let bundle = site.file("a.tar.zst");
    assert_eq!(verify(&bundle).unwrap().index, exported.index);

    let again = site.export(&manifest, "store", "b.tar.zst").await.unwrap();
    assert_eq!(again.fetched, 0, "nothing is fetched twice");
    assert!(fs::read(&bundle).unwrap() == fs::read(site.file("b.tar.zst")).unwrap());

    let store = site.store("elsewhere", true);
    let catalogue = Catalogue::builtin().with_bundle(&bundle, &exported.index).unwrap();
    import(&bundle, &exported.index, &catalogue, &store).await.unwrap();
    let opened = Bundle::open(&bundle).unwrap();
    for (id, version, arch) in
        [("debian", "11", Arch::Amd64), ("debian", "12", Arch::Arm64), ("ubuntu", "12", Arch::Amd64)]
    {
        assert_eq!(opened.packages(id, version, arch), None);
    }
    let packages = opened.packages("debian", "12", Arch::Amd64).unwrap();
    assert!(packages.has("kk-test-tool") && !packages.has("kk-test-other"));
    for file in
        packages.packages.iter().map(|(_, file)| file).chain(packages.lists.iter().map(|(_, file)| file))
    {
        assert_eq!(kk_util::sha256(fs::read(store.blob(&file.digest)).unwrap()), file.sha256);
    }
    assert_eq!(import(&bundle, &exported.index, &catalogue, &store).await.unwrap(), 0);
    let left: BTreeSet<String> = fs::read_dir(site.file("store"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    assert_eq!(left, ["oci".to_owned()].into(), "apt leaves nothing");
}

#[tokio::test]
async fn what_cannot_be_collected_is_told_with_what_to_do() {
    let site = Site::new().await;
    let unsigned = site.file("unsigned");
    fs::create_dir(&unsigned).unwrap();
    for name in ["Packages", "keyring.gpg"] {
        fs::copy(Path::new(REPOSITORY).join(name), unsigned.join(name)).unwrap();
    }
    let damaged = site.file("damaged");
    fs::create_dir(&damaged).unwrap();
    for entry in fs::read_dir(REPOSITORY).unwrap() {
        let name = entry.unwrap().file_name();
        let mut bytes = fs::read(Path::new(REPOSITORY).join(&name)).unwrap();
        if name.to_str().unwrap().starts_with("kk-test-tool") {
            bytes[300] ^= 1;
        }
        fs::write(damaged.join(name), bytes).unwrap();
    }
    let mut without_keys = system(REPOSITORY, &["kk-test-tool"]);
    without_keys.keyring = Some("/nowhere/keyring.gpg".into());
    for (system, reason) in [
        (system(unsigned.to_str().unwrap(), &["kk-test-tool"]), "does not have a Release file"),
        (system(damaged.to_str().unwrap(), &["kk-test-tool"]), "Hash Sum mismatch"),
        (system(REPOSITORY, &["kk-test-none"]), "Unable to locate package kk-test-none"),
        (
            system("/nowhere", &["kk-test-tool"]),
            "the keys of the distribution are missing: /nowhere/keyring.gpg",
        ),
        (without_keys, "the keys of the distribution are missing"),
    ] {
        let mut manifest = manifest(&site);
        manifest.operating_systems = vec![system];
        let error = site.export(&manifest, "store", "a.tar.zst").await.unwrap_err();
        assert!(error.contains("packages of debian 12 amd64") && error.contains(reason), "{reason}: {error}");
        assert!(!site.file("a.tar.zst").exists());
    }
}

#[tokio::test]
async fn a_list_that_names_other_packages_is_refused() {
    const CASES: [Case; 5] = [
        ("names other packages", |parts| parts.index.packages[1].version = "3".into()),
        ("names other packages", |parts| drop(parts.index.packages.pop())),
        ("names other packages", |parts| *parts.bytes(TOOL) = b"another one".to_vec()),
        ("is not a list of packages", |parts| {
            *parts.bytes("packages/debian/12/amd64/Packages") = b"Package: kk-test-tool\n".to_vec();
        }),
        ("lies elsewhere than in packages/debian/12/amd64", |parts| {
            parts.index.packages[0].path = "packages/debian/11/amd64/kk-test-library_1.1_amd64.deb".into();
        }),
    ];
    let site = Site::new().await;
    site.export(&manifest(&site), "store", "a.tar.zst").await.unwrap();
    expect_refused(&site, &CASES, "lies").await;
}

/// A version of kk without support for packages reads formats up to 1, and refuses others with a clear message.
#[tokio::test]
async fn only_a_bundle_with_packages_has_the_new_format() {
    let site = Site::new().await;
    let without = site.manifest("amd64", "team/app:v1").without_programs();
    let base = site.export(&without, "store", "base.tar.zst").await.unwrap().index;
    let index = site.export(&manifest(&site), "store", "whole.tar.zst").await.unwrap().index;
    assert_eq!((base.format, index.format), (1, 2));
    assert!(!String::from_utf8(base.text()).unwrap().contains("packages"));
    let wrong = BundleIndex { format: 1, ..index.clone() };
    assert!(BundleIndex::parse(&wrong.text()).unwrap_err().contains("does not match its content"));

    site.export_with(&manifest(&site), "store", "delta.tar.zst", Some(&base)).await.unwrap();
    let head = super::members(&site.file("delta.tar.zst")).swap_remove(0).content;
    assert!(index::check_format(&head, 1).unwrap_err().contains("its format is 2"));
    let file = |name: &str| site.file(name);
    merge(&file("base.tar.zst"), &file("delta.tar.zst"), &file("merged.tar.zst"), &|_| {}).unwrap();
    assert!(fs::read(file("merged.tar.zst")).unwrap() == fs::read(file("whole.tar.zst")).unwrap());

    let difference = Difference::between(&base, &index);
    let parts: Vec<_> = difference.parts.iter().map(|part| (&*part.part, &*part.new[0])).collect();
    let expected =
        [("kk-test-library debian 12 amd64", "1.1"), ("kk-test-tool debian 12 amd64", "2:1.0~rc1+x")];
    assert_eq!(parts, expected);
}
