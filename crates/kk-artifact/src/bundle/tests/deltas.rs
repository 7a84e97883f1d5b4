//! Merges of an older bundle and a delta.

use std::fs;
use std::path::Path;

use super::super::*;
use super::exports::{Site, WithoutPrograms as _};
use super::{entry, members, pack};

const BASE: &str = "base.tar.zst";
const DELTA: &str = "delta.tar.zst";

/// Bundles for one architecture and for two, and the delta between them.
async fn site() -> Site {
    let site = Site::new().await;
    let one = site.manifest("amd64", "team/app:v1");
    let two = site.manifest("amd64, arm64", "team/app:v1").without_programs();
    let base = site.export(&one, "store", BASE).await.unwrap().index;
    site.export(&two, "store", "whole.tar.zst").await.unwrap();
    site.export_with(&two, "store", DELTA, Some(&base)).await.unwrap();
    site
}

fn merge_in(site: &Site, base: &str, delta: &str) -> Result<BundleIndex, String> {
    let file = |name: &str| site.file(name);
    merge(&file(base), &file(delta), &file("merged.tar.zst"), &|_| {}).map_err(|error| error.to_string())
}

fn names(dir: &Path) -> Vec<String> {
    let mut names: Vec<_> =
        fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[tokio::test]
async fn base_and_delta_give_the_bundle_byte_by_byte() {
    let site = site().await;
    let index = merge_in(&site, BASE, DELTA).unwrap();
    let read = |name: &str| fs::read(site.file(name)).unwrap();
    assert!(read("merged.tar.zst") == read("whole.tar.zst"));
    assert_eq!(verify(&site.file("merged.tar.zst")).unwrap().index, index);
    let dir = site.file("");
    assert_eq!(names(&dir), [BASE, DELTA, "merged.tar.zst", "store", "whole.tar.zst"]);
}

#[tokio::test]
async fn a_difference_names_what_only_one_of_them_has() {
    let site = site().await;
    let [old, new] = [BASE, "whole.tar.zst"].map(|name| index(&site.file(name)).unwrap());
    let difference = Difference::between(&old, &new);
    let names: Vec<&str> = difference.parts.iter().map(|part| part.part.as_str()).collect();
    assert_eq!(names[1..], ["kubeadm amd64", "kubectl amd64", "kubelet amd64"]);
    assert!(names[0].ends_with("/team/app"), "the image has another architecture: {names:?}");
    assert_eq!(
        (&difference.parts[1].old[..], &difference.parts[1].new[..]),
        (&["1.36.99".to_owned()][..], &[][..])
    );
    assert!(difference.parts[0].old[0].starts_with("v1 ") && difference.bytes > 100_000);
    assert_eq!(Difference::between(&old, &old).parts, []);
}

#[tokio::test]
async fn what_does_not_belong_together_is_refused_and_leaves_nothing() {
    let site = site().await;
    let whole = fs::read(site.file(DELTA)).unwrap();
    fs::write(site.file("cut.tar.zst"), &whole[..whole.len() / 2]).unwrap();
    let before = names(&site.file(""));
    for (base, delta, reason) in [
        ("whole.tar.zst", DELTA, "it is a delta for another bundle than"),
        (BASE, "whole.tar.zst", "it is a complete bundle, not a delta"),
        (DELTA, DELTA, "it is a delta: kk artifact merge makes a bundle from it and its base"),
        (BASE, "cut.tar.zst", "it is truncated"),
    ] {
        let error = merge_in(&site, base, delta).unwrap_err();
        assert!(error.contains(reason), "{base} {delta}: {error}");
        assert_eq!(names(&site.file("")), before, "{base} {delta}");
    }
    assert!(verify(&site.file(DELTA)).unwrap_err().to_string().contains("kk artifact merge"));
}

#[tokio::test]
async fn a_delta_whose_index_its_documents_contradict_is_refused_and_leaves_nothing() {
    let site = site().await;
    let bad = "bad.tar.zst";
    let mut tar = Vec::new();
    for member in members(&site.file(DELTA)) {
        let content = if member.path == "kk-delta.json" {
            let text = String::from_utf8(member.content).unwrap();
            text.replacen("image.index.v1+json", "image.index.v1+Json", 1).into_bytes()
        } else {
            member.content
        };
        entry(&mut tar, &member.path, member.kind, &content);
    }
    tar.resize(tar.len() + 1024, 0);
    pack(&site.file(bad), &tar);
    let before = names(&site.file(""));
    let error = merge_in(&site, BASE, bad).unwrap_err();
    assert!(error.contains(bad) && error.contains("its type is"), "{error}");
    assert_eq!(names(&site.file("")), before);
}
