//! Bundles and deltas with changes at random positions: they are refused or good, and a refused one leaves no files.
//!
//! As in `shell-operator`, `ARBTEST_BUDGET_MS` is the time for each target, and a failure is reproduced by its seed.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Component, Path};

use arbtest::arbitrary::{Result, Unstructured};
use tokio::runtime::Runtime;

use super::super::{merge, verify};
use super::exports::{Site, WithoutPrograms as _};
use super::{Member, entry, members, pack, packages};

/// Changes some of the files, their names, kinds, number or order, or the tar that contains them.
fn changed(members: &[Member], u: &mut Unstructured<'_>) -> Result<Vec<u8>> {
    let mut members = members.to_vec();
    for _ in 0..u.int_in_range(0..=2)? {
        let at = u.choose_index(members.len())?;
        let other = u.choose_index(members.len())?;
        match u.int_in_range(0..=7)? {
            0 => {
                let paths = ["../x", "/etc/x", "programs/..", "", "index.json"];
                members[at].path = (*u.choose(&paths)?).to_owned();
            }
            1 => members[at].kind = *u.choose(b"1256Lgx\0")?,
            2 => members.swap(at, other),
            3 => drop(members.remove(at)),
            4 => members.insert(other, members[at].clone()),
            5 => {
                let len = members[at].content.len();
                members[at].content.truncate(u.choose_index(len.max(1))?);
            }
            6 => {
                let more = u.int_in_range(1..=64)?;
                members[at].content.extend_from_slice(u.bytes(more)?);
            }
            _ => {
                // Texts contain digits at interesting positions: sizes, formats, checksums.
                let len = members[at].content.len();
                if len > 0 {
                    let byte = u.choose_index(len)?;
                    members[at].content[byte] = *u.choose(b"09af-\"{}[],/.\0")?;
                }
            }
        }
        if members.is_empty() {
            break;
        }
    }
    let mut tar = Vec::new();
    for Member { path, kind, content } in &members {
        entry(&mut tar, path, *kind, content);
    }
    tar.resize(tar.len() + 1024, 0);
    for _ in 0..u.int_in_range(0..=2)? {
        let at = u.choose_index(tar.len())?;
        tar[at] ^= 1 << u.int_in_range(0..=7)?;
    }
    if u.ratio(1, 8)? {
        tar.truncate(u.choose_index(tar.len())?);
    }
    Ok(tar)
}

fn names(dir: &Path) -> BTreeSet<String> {
    fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

#[test]
fn fuzz_bundles() {
    let (site, bundles) = Runtime::new().unwrap().block_on(async {
        let site = Site::new().await;
        let one = site.manifest("amd64", "team/app:v1");
        let two = site.manifest("amd64, arm64", "team/app:v1").without_programs();
        let base = site.export(&one, "store", "base.tar.zst").await.unwrap().index;
        site.export_with(&two, "store", "delta.tar.zst", Some(&base)).await.unwrap();
        site.export(&packages::manifest(&site), "store", "packages.tar.zst").await.unwrap();
        let bundles =
            ["base.tar.zst", "delta.tar.zst", "packages.tar.zst"].map(|name| members(&site.file(name)));
        (site, bundles)
    });
    let (base, bad, out) = (site.file("base.tar.zst"), site.file("bad.tar.zst"), site.file("merged.tar.zst"));
    let mut runs = 0_u64;
    let property = |u: &mut Unstructured<'_>| {
        runs += 1;
        pack(&bad, &changed(u.choose(&bundles)?, u)?);
        let before = names(&site.file(""));
        if let Ok(verified) = verify(&bad) {
            for file in verified.index.files.iter() {
                let mut parts = Path::new(&file.path).components();
                assert!(parts.all(|part| matches!(part, Component::Normal(_))), "{}", file.path);
            }
        }
        if merge(&base, &bad, &out, &|_| {}).is_ok() {
            verify(&out).unwrap();
            fs::remove_file(&out).unwrap();
        }
        assert_eq!(names(&site.file("")), before);
        Ok(())
    };
    arbtest::arbtest(property).size_min(64).size_max(1024).run();
    println!("fuzz bundles: {runs} runs without a failure");
}
