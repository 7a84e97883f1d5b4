//! Bundles with rpm packages: collected by dnf from a repository with two needed signed packages and an unneeded one.

use std::fs;
use std::path::Path;

use kk_config::{Arch, Manifest, OperatingSystem};

use super::super::*;
use super::exports::{Site, WithoutPrograms as _};
use crate::Catalogue;

const REPOSITORY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/repository-rpm");
const TOOL: &str = "kk-test-tool-1.0~rc1^x-1.el9.noarch.rpm";
const LIBRARY: &str = "kk-test-library-1.1-1.el9.x86_64.rpm";

fn manifest(site: &Site, repository: &str, keyring: &str, package: &str) -> Manifest {
    let mut manifest = site.manifest("amd64", "team/app:v1").without_programs();
    manifest.operating_systems.push(OperatingSystem {
        id: "rocky".into(),
        version: "9".into(),
        arch: Arch::Amd64,
        sources: vec![format!("file://{repository}")],
        keyring: Some(keyring.into()),
        packages: [package.to_owned()].into(),
    });
    manifest
}

fn keys() -> String {
    format!("{REPOSITORY}/key.asc")
}

#[tokio::test]
async fn rpms_come_with_what_they_need_and_are_there_after_an_import() {
    let site = Site::new().await;
    let manifest = manifest(&site, REPOSITORY, &keys(), "kk-test-command");
    let exported = site.export(&manifest, "store", "a.tar.zst").await.unwrap();
    let part = |part: &PackagePart| (part.name.clone(), part.version.clone(), part.provides.concat());
    let parts: Vec<_> = exported.index.packages.iter().map(part).collect();
    let expected =
        [("kk-test-library", "1.1-1.el9", ""), ("kk-test-tool", "2:1.0~rc1^x-1.el9", "kk-test-command")];
    assert_eq!(parts, expected.map(|(a, b, c)| (a.to_owned(), b.to_owned(), c.to_owned())));
    let bundle = site.file("a.tar.zst");
    assert_eq!(verify(&bundle).unwrap().index, exported.index);

    // A fetched file that the disk has damaged is fetched again.
    let kept = site.file("store").join("packages/rocky-9-amd64");
    fs::write(kept.join(TOOL), "damaged").unwrap();
    fs::write(kept.join("kk-test-old-1-1.noarch.rpm"), "an older one").unwrap();
    site.export(&manifest, "store", "b.tar.zst").await.unwrap();
    assert!(fs::read(&bundle).unwrap() == fs::read(site.file("b.tar.zst")).unwrap());
    let mut left: Vec<_> = fs::read_dir(&kept).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    left.sort();
    assert_eq!(left, [LIBRARY, TOOL], "what is not wanted any more goes");

    let store = site.store("elsewhere", true);
    let catalogue = Catalogue::builtin().with_bundle(&bundle, &exported.index).unwrap();
    import(&bundle, &exported.index, &catalogue, &store).await.unwrap();
    let packages = Bundle::open(&bundle).unwrap().packages("rocky", "9", Arch::Amd64).unwrap();
    assert!(packages.is_rpm() && packages.has("kk-test-command") && !packages.has("kk-test-other"));
    let lists: Vec<&str> = packages.lists.iter().map(|(path, _)| path.as_str()).collect();
    let expected = ["filelists.xml.gz", "other.xml.gz", "primary.xml.gz", "repomd.xml"];
    assert_eq!(lists, expected.map(|name| format!("repodata/{name}")));
    let lists = packages.lists.iter().map(|(_, file)| file);
    for file in packages.packages.iter().map(|(_, file)| file).chain(lists) {
        assert_eq!(kk_util::sha256(fs::read(store.blob(&file.digest)).unwrap()), file.sha256);
    }
    let sbom = super::members(&bundle).into_iter().find(|member| member.path == "sbom.spdx.json").unwrap();
    let sbom = String::from_utf8(sbom.content).unwrap();
    assert!(sbom.contains("pkg:rpm/rocky/kk-test-library@1.1-1.el9?arch=amd64"), "{sbom}");
}

#[tokio::test]
async fn rpms_that_cannot_be_collected_are_told_with_what_to_do() {
    let site = Site::new().await;
    let damaged = site.file("damaged");
    copy(Path::new(REPOSITORY), &damaged);
    let mut bytes = fs::read(damaged.join(TOOL)).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    fs::write(damaged.join(TOOL), bytes).unwrap();
    let other = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/other-key.asc");
    let empty = site.file("empty.asc");
    fs::write(&empty, "no key").unwrap();
    for (repository, keyring, package, reason) in [
        (REPOSITORY, keys().as_str(), "kk-test-none", "No package kk-test-none available"),
        (damaged.to_str().unwrap(), &keys(), "kk-test-tool", "incorrect checksum"),
        ("/nowhere", &keys(), "kk-test-tool", "source0"),
        (REPOSITORY, "/nowhere/key.asc", "kk-test-tool", "the keys of the distribution are missing"),
        (REPOSITORY, empty.to_str().unwrap(), "kk-test-tool", "holds no key"),
        (REPOSITORY, other, "kk-test-tool", "has no signature by the keys of the distribution"),
    ] {
        let manifest = manifest(&site, repository, keyring, package);
        let error = site.export(&manifest, "store", "a.tar.zst").await.unwrap_err();
        assert!(error.contains("packages of rocky 9 amd64") && error.contains(reason), "{reason}: {error}");
        assert!(!site.file("a.tar.zst").exists());
    }
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let to = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &to);
        } else {
            fs::copy(entry.path(), to).unwrap();
        }
    }
}
