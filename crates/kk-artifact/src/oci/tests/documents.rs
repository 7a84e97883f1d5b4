//! Random documents of images: they are read as they were written. A damaged one is refused, or names only content that can
//! exist.

use kk_config::Arch;
use kk_test_common::fuzz::{Result, Unstructured, damaged, fuzz};
use serde_json::{Map, Value, json};

use super::super::document::{self, Blob, Root};

const TYPES: [&str; 2] = ["application/vnd.oci.image.", "application/vnd.docker.distribution.manifest."];

fn digest(u: &mut Unstructured<'_>) -> Result<String> {
    Ok(format!("sha256:{}", kk_util::hex([u.int_in_range(0..=5_u8)?; 32])))
}

fn descriptor(kind: &str, u: &mut Unstructured<'_>) -> Result<Value> {
    let mut value = json!({"mediaType": kind, "digest": digest(u)?, "size": u.arbitrary::<u32>()?});
    if u.ratio(1, 4)? {
        value["annotations"] = json!({"org.opencontainers.image.ref.name": "registry.local/a:1"});
    }
    Ok(value)
}

/// An index for these platforms, or a manifest. The order of the fields and the media type follow one of the two formats.
fn any_document(u: &mut Unstructured<'_>) -> Result<Value> {
    let mut fields = Map::new();
    fields.insert("schemaVersion".to_owned(), json!(2));
    let [oci, docker] = TYPES;
    let is_docker = u.ratio(1, 3)?;
    if u.arbitrary()? {
        let kind = if is_docker { format!("{docker}list.v2+json") } else { format!("{oci}index.v1+json") };
        let mut entries = Vec::new();
        for _ in 0..u.int_in_range(0..=4)? {
            let mut entry = descriptor(&format!("{oci}manifest.v1+json"), u)?;
            let arch = *u.choose(&["amd64", "arm64", "riscv64", "unknown"])?;
            let os = *u.choose(&["linux", "linux", "windows", "unknown"])?;
            if u.ratio(5, 6)? {
                entry["platform"] = json!({"architecture": arch, "os": os});
            }
            entries.push(entry);
        }
        if is_docker || u.arbitrary()? {
            fields.insert("mediaType".to_owned(), json!(kind));
        }
        fields.insert("manifests".to_owned(), Value::Array(entries));
    } else {
        let kind = if is_docker { format!("{docker}v2+json") } else { format!("{oci}manifest.v1+json") };
        if is_docker || u.arbitrary()? {
            fields.insert("mediaType".to_owned(), json!(kind));
        }
        fields.insert("config".to_owned(), descriptor(&format!("{oci}config.v1+json"), u)?);
        let mut layers = Vec::new();
        for _ in 0..u.int_in_range(0..=4)? {
            layers.push(descriptor(&format!("{oci}layer.v1.tar+gzip"), u)?);
        }
        fields.insert("layers".to_owned(), Value::Array(layers));
    }
    if u.arbitrary()? {
        fields.insert("annotations".to_owned(), json!({"made.by": "a \"b\""}));
    }
    Ok(Value::Object(fields))
}

/// Changes one value of the document, or adds one.
fn change(value: &mut Value, u: &mut Unstructured<'_>) -> Result<()> {
    let pointers =
        ["", "/manifests", "/layers", "/config", "/manifests/0", "/layers/0", "/manifests/0/platform"];
    let Some(place) = value.pointer_mut(u.choose(&pointers)?) else { return Ok(()) };
    let names =
        ["manifests", "config", "layers", "mediaType", "digest", "size", "platform", "os", "schemaVersion"];
    let values = [
        json!(null),
        json!([]),
        json!({}),
        json!(""),
        json!(-1),
        json!(u64::MAX),
        json!(1_u64 << 40),
        json!(1.5),
        json!("sha512:ab"),
        json!("sha256:../../x"),
        json!(format!("sha256:{}", "A".repeat(64))),
        json!("application/vnd.oci.image.index.v1+json"),
        json!("linux"),
    ];
    let name = *u.choose(&names)?;
    let new = u.choose(&values)?.clone();
    match place {
        Value::Object(map) if u.ratio(1, 4)? => drop(map.remove(name)),
        Value::Object(map) => drop(map.insert(name.to_owned(), new)),
        Value::Array(list) => list.push(new),
        other => *other = new,
    }
    Ok(())
}

/// Whether the document contains a number that is not an integer of 64 bits. OCI defines none, and `serde_json` may change its last
/// digit.
fn has_fraction(value: &Value) -> bool {
    match value {
        Value::Number(number) => number.is_f64(),
        Value::Array(list) => list.iter().any(has_fraction),
        Value::Object(map) => map.values().any(has_fraction),
        _ => false,
    }
}

/// Checks a document that was accepted.
fn check(bytes: &[u8], root: &Root, u: &mut Unstructured<'_>) -> Result<()> {
    let shown = String::from_utf8_lossy(bytes);
    let value: Value = serde_json::from_slice(bytes).unwrap();
    match root {
        Root::Manifest(manifest) => {
            assert!(value["manifests"].is_null(), "{shown}");
            let Ok(content) = document::content(manifest) else { return Ok(()) };
            assert!(content.len() * 64 <= bytes.len(), "{shown}");
            assert!(
                content.iter().try_fold(0, |sum: u64, blob| sum.checked_add(blob.size)).is_some(),
                "{shown}"
            );
        }
        Root::Index(index) => {
            assert!(value["config"].is_null() && value["layers"].is_null(), "{shown}");
            assert!(document::manifest(bytes).is_err(), "{shown}");
            if has_fraction(&value) {
                return Ok(());
            }
            let mut keep = Vec::new();
            for entry in index.manifests() {
                keep.extend(u.arbitrary::<bool>()?.then_some(entry));
            }
            let reduced = document::reduced(bytes, &keep).unwrap();
            assert_eq!(document::reduced(&reduced, &keep).unwrap(), reduced, "{shown}");
            let Ok((Root::Index(left), _)) = document::root(&reduced) else { panic!("{shown}") };
            let is_kept =
                |entry: &&oci_spec::image::Descriptor| keep.iter().any(|one| one.digest() == entry.digest());
            assert!(left.manifests().iter().eq(index.manifests().iter().filter(is_kept)), "{shown}");
            // All other fields stay.
            let without = |mut value: Value| {
                value.as_object_mut().unwrap().remove("manifests");
                value
            };
            assert_eq!(without(serde_json::from_slice(&reduced).unwrap()), without(value), "{shown}");
        }
    }
    Ok(())
}

/// The content that the document describes, read from its JSON.
fn described(value: &Value) -> Vec<Blob> {
    let list = |field: &str| value[field].as_array().cloned().unwrap_or_default();
    let all = [vec![value["config"].clone()], list("layers"), list("manifests")].concat();
    let blob = |value: &Value| {
        let sum = value["digest"].as_str()?.strip_prefix("sha256:")?.parse().ok()?;
        Some(Blob { sum, size: value["size"].as_u64()? })
    };
    all.iter().filter_map(blob).collect()
}

#[test]
fn fuzz_documents_of_images() {
    let pieces: [&[u8]; 16] = [
        b"{",
        b"}",
        b"[",
        b"]",
        b",",
        b":",
        b"\"",
        b"\\u0000",
        b"null",
        b"1e99",
        b"-",
        b"\"manifests\":[],",
        b"\"config\":{},",
        b"sha256:",
        b"\xff",
        b"18446744073709551615",
    ];
    fuzz("documents of images", |u| {
        let mut value = any_document(u)?;
        let bytes = serde_json::to_vec(&value).unwrap();
        let (root, media_type) = document::root(&bytes).unwrap();
        assert!(document::ACCEPTED.contains(&media_type.as_str()));
        let found = match &root {
            Root::Manifest(manifest) => document::content(manifest),
            Root::Index(index) => index.manifests().iter().map(document::blob).collect(),
        };
        assert_eq!(found.unwrap(), described(&value), "{value}");
        check(&bytes, &root, u)?;

        for _ in 0..u.int_in_range(0..=2)? {
            change(&mut value, u)?;
        }
        let mut bytes = serde_json::to_vec(&value).unwrap();
        if u.arbitrary()? {
            bytes = damaged(&bytes, &pieces, u)?;
        }
        match document::root(&bytes) {
            Ok((root, _)) => check(&bytes, &root, u).map(|()| true),
            Err(reason) => {
                assert!(reason.len() < bytes.len() + 500, "{reason}");
                Ok(false)
            }
        }
    });
}

#[test]
fn fuzz_configurations_of_images() {
    let pieces: [&[u8]; 8] = [b"{", b"\"", b",", b"null", b"linux", b"amd64", b"arm64", b"\"os\":\"linux\","];
    fuzz("configurations of images", |u| {
        let (os, arch) =
            (*u.choose(&["linux", "windows"])?, *u.choose(&["amd64", "arm64", "arm", "amd64p32"])?);
        let rootfs = json!({"type": "layers", "diff_ids": []});
        let mut value =
            json!({"architecture": arch, "os": os, "rootfs": rootfs, "history": [{"comment": "x"}]});
        let read = |value: &Value| document::arch_of_configuration(value.to_string().as_bytes());
        let expected = match (os, arch) {
            ("linux", "amd64") => Some(Arch::Amd64),
            ("linux", "arm64") => Some(Arch::Arm64),
            _ => None,
        };
        assert_eq!(read(&value).unwrap(), expected);
        if u.arbitrary()? {
            let name = *u.choose(&["architecture", "os", "rootfs", "history"])?;
            value[name] =
                u.choose(&[json!(null), json!(["linux"]), json!("Linux"), json!(1), json!({})])?.clone();
            assert!(!read(&value).is_ok_and(|arch| arch.is_some()) || name == "history", "{value}");
        }
        let mut bytes = value.to_string().into_bytes();
        if u.arbitrary()? {
            bytes = damaged(&bytes, &pieces, u)?;
        }
        let shown = String::from_utf8_lossy(&bytes);
        let Ok(found) = document::arch_of_configuration(&bytes) else { return Ok(false) };
        assert!(found.is_none_or(|arch| shown.contains(arch.as_str()) && shown.contains("linux")), "{shown}");
        Ok(true)
    });
}

#[test]
fn a_document_that_is_both_an_index_and_a_manifest_is_refused() {
    let descriptor = json!({"mediaType": "application/vnd.oci.image.config.v1+json", "size": 1,
        "digest": format!("sha256:{}", "a".repeat(64))});
    for (field, value) in [("manifests", json!([])), ("manifests", json!({})), ("manifests", json!("x"))] {
        let mut both = json!({"schemaVersion": 2, "config": descriptor, "layers": []});
        both[field] = value;
        let reason = document::root(both.to_string().as_bytes()).err();
        assert_eq!(reason.as_deref(), Some("it is both an index and a manifest"), "{both}");
    }
}

#[test]
fn sizes_whose_sum_is_not_a_number_are_refused() {
    let descriptor = json!({"mediaType": "application/vnd.oci.image.layer.v1.tar", "size": u64::MAX,
        "digest": format!("sha256:{}", "a".repeat(64))});
    let text = json!({"schemaVersion": 2, "config": descriptor, "layers": [descriptor]}).to_string();
    let reason = document::content(&document::manifest(text.as_bytes()).unwrap()).unwrap_err();
    assert!(reason.contains("is said to have 18446744073709551615 bytes"), "{reason}");
}
