//! Bundles that are damaged, or crafted by an attacker: each is refused with its reason, and nothing is written.

use std::fs;
use std::path::Path;

use super::super::delta::Delta;
use super::super::{FilePart, import, index, merge, verify};
use super::{File, bundle, entry, index_of, pack, sized_entry};
use crate::{Catalogue, Store, StoreSettings};

const LAYOUT: (&str, &[u8]) = ("oci-layout", b"{\"imageLayoutVersion\":\"1.0.0\"}");

/// The path of a blob and its content.
fn blob() -> (String, Vec<u8>) {
    let content: Vec<u8> =
        (0..50_000_u32).flat_map(|number| number.wrapping_mul(2_654_435_761).to_le_bytes()).collect();
    (format!("blobs/sha256/{}", kk_util::sha256(&content)), content)
}

fn good(path: &Path) {
    let (name, content) = blob();
    let index = serde_json::to_vec(&index_of(&[LAYOUT, (&name, &content)])).unwrap();
    bundle(path, &index, &[(LAYOUT.0, b'0', LAYOUT.1), (&name, b'0', &content)]);
}

fn refused(path: &Path) -> String {
    verify(path).expect_err("this bundle is to be refused").to_string()
}

#[test]
fn a_bundle_that_is_cut_or_has_a_flipped_bit_anywhere_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("x.tar.zst");
    good(&path);
    assert!(verify(&path).is_ok());
    let whole = fs::read(&path).unwrap();
    for size in (0..whole.len()).step_by(whole.len() / 60).chain([1, 3, whole.len() - 1]) {
        fs::write(&path, &whole[..size]).unwrap();
        refused(&path);
    }
    for at in (0..whole.len()).step_by(whole.len() / 60).chain([0, 4, whole.len() - 1]) {
        let mut flipped = whole.clone();
        // Not 0x10: zstd ignores that bit of its fifth byte (RFC 8878, "Unused bit"), and all content is the same.
        flipped[at] ^= 0x04;
        fs::write(&path, &flipped).unwrap();
        refused(&path);
    }
    fs::write(&path, [whole.as_slice(), b"more"].concat()).unwrap();
    refused(&path);
}

#[tokio::test]
async fn nothing_of_a_damaged_bundle_gets_its_name() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("x.tar.zst");
    let (name, content) = blob();
    let known = index_of(&[LAYOUT, (&name, &content)]);
    let mut damaged = content;
    damaged[1000] ^= 1;
    bundle(
        &path,
        &serde_json::to_vec(&known).unwrap(),
        &[(LAYOUT.0, b'0', LAYOUT.1), (&name, b'0', &damaged)],
    );
    let store = Store::new(StoreSettings::new(dir.path().join("store"))).unwrap();
    let error = import(&path, &known, &Catalogue::builtin(), &store).await.unwrap_err().to_string();
    assert!(error.contains("is damaged: its SHA-256 is"), "{error}");
    let blobs = dir.path().join("store/oci/blobs/sha256");
    let left: Vec<_> = fs::read_dir(blobs).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left, [".lock"]);
}

#[tokio::test]
async fn an_import_onto_a_full_disk_leaves_nothing_of_the_file() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("x.tar.zst");
    good(&path);
    let known = index(&path).unwrap();
    let blobs = dir.path().join("store/oci/blobs/sha256");
    fs::create_dir_all(&blobs).unwrap();
    let part = blobs.join(format!(".{}.import", kk_util::sha256(blob().1)));
    std::os::unix::fs::symlink("/dev/full", part).unwrap();
    let store = Store::new(StoreSettings::new(dir.path().join("store"))).unwrap();
    let error = import(&path, &known, &Catalogue::builtin(), &store).await.unwrap_err().to_string();
    assert!(error.contains("No space left"), "{error}");
    let left: Vec<_> = fs::read_dir(blobs).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left, [".lock"]);
}

#[tokio::test]
async fn a_bundle_that_does_not_fit_on_the_disk_is_not_unpacked() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("x.tar.zst");
    let (name, content) = blob();
    let zeros = [0; 4096];
    let mut known = index_of(&[LAYOUT, (&name, &content)]);
    // It claims to contain 256 TiB of zeros.
    let sha256 = kk_util::sha256("zeros");
    let huge = FilePart { path: format!("blobs/sha256/{sha256}"), size: 1 << 48, sha256 };
    known.files.push(huge.clone());
    let mut tar = Vec::new();
    entry(&mut tar, "kk-bundle.json", b'0', &known.text());
    entry(&mut tar, LAYOUT.0, b'0', LAYOUT.1);
    entry(&mut tar, &name, b'0', &content);
    sized_entry(&mut tar, &huge.path, b'0', &zeros, huge.size);
    pack(&path, &tar);
    let store = Store::new(StoreSettings::new(dir.path().join("store"))).unwrap();
    let error = import(&path, &index(&path).unwrap(), &Catalogue::builtin(), &store).await.unwrap_err();
    assert!(error.to_string().contains("268435457 MiB are needed, and "), "{error}");
    assert!(error.hint().unwrap().contains("free space"));
    let blobs = dir.path().join("store/oci/blobs/sha256");
    let left: Vec<_> = fs::read_dir(blobs).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left, [".lock"]);
}

#[test]
fn a_merge_that_does_not_fit_on_the_disk_unpacks_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let [base, delta, out] = ["base", "delta", "out"].map(|name| dir.path().join(name));
    good(&base);
    let from = index(&base).unwrap();
    let sha256 = kk_util::sha256("zeros");
    let huge = FilePart { path: format!("blobs/sha256/{sha256}"), size: 1 << 48, sha256 };
    let mut whole = from.clone();
    whole.files.push(huge.clone());
    let mut tar = Vec::new();
    entry(&mut tar, "kk-delta.json", b'0', &Delta::between(&from, whole).text());
    sized_entry(&mut tar, &huge.path, b'0', &[0; 4096], huge.size);
    pack(&delta, &tar);
    let error = merge(&base, &delta, &out, &|_| {}).unwrap_err();
    assert!(error.to_string().contains("536870913 MiB are needed, and "), "{error}");
    assert!(!out.exists());
}

#[tokio::test]
async fn a_blob_that_is_damaged_on_the_disk_is_taken_anew() {
    use std::os::unix::fs::MetadataExt as _;
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("x.tar.zst");
    good(&path);
    let known = index(&path).unwrap();
    let store = Store::new(StoreSettings::new(dir.path().join("store"))).unwrap();
    let again = async || import(&path, &known, &Catalogue::builtin(), &store).await.unwrap();
    let (name, content) = blob();
    assert_eq!((again().await, again().await), (content.len() as u64, 0));
    let place = dir.path().join("store/oci").join(&name);
    let changed = || fs::metadata(&place).map(|data| (data.ctime(), data.ctime_nsec())).unwrap();
    let (before, mut damaged) = (changed(), content.clone());
    damaged[1000] ^= 1;
    // The clock of a file system has ticks: two writes within one tick cannot be distinguished.
    while changed() == before {
        fs::write(&place, &damaged).unwrap();
    }
    assert_eq!((again().await, again().await), (content.len() as u64, 0));
    assert!(fs::read(&place).unwrap() == content);
    // A file that an earlier version of kk left has no stamp.
    fs::remove_file(place.with_file_name(format!(".{}.stamp", kk_util::sha256(&content)))).unwrap();
    assert_eq!(again().await, 0, "it is read instead");
}

#[test]
fn what_a_tar_can_do_to_whoever_unpacks_it_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("x.tar.zst");
    let (name, content) = blob();
    let known = serde_json::to_vec(&index_of(&[LAYOUT, (&name, &content)])).unwrap();
    let layout = (LAYOUT.0, b'0', LAYOUT.1);
    let plain: File<'_> = (&name, b'0', &content);
    let cases: [(&str, &[File<'_>]); 9] = [
        ("is missing", &[layout]),
        ("it contains `../../etc/passwd`", &[layout, ("../../etc/passwd", b'0', &content)]),
        ("it contains `/etc/passwd`", &[layout, ("/etc/passwd", b'0', &content)]),
        ("is not a plain file", &[layout, (&name, b'2', b"")]),
        ("is not a plain file", &[layout, (&name, b'1', b"")]),
        ("is not a plain file", &[layout, (&name, b'3', b"")]),
        ("where the index has", &[layout, layout, plain]),
        ("the index does not name", &[layout, plain, plain]),
        ("has 3 bytes", &[layout, (&name, b'0', b"abc")]),
    ];
    for (reason, files) in cases {
        bundle(&path, &known, files);
        let said = refused(&path);
        assert!(said.contains(reason), "{reason}: {said}");
    }
}

#[test]
fn an_index_that_makes_no_sense_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("x.tar.zst");
    let content: &[u8] = b"x";
    let of = |name: &str| serde_json::to_string(&index_of(&[(name, content)])).unwrap();
    let twice = serde_json::to_string(&index_of(&[LAYOUT, LAYOUT])).unwrap();
    let image = r#""images":[{"name":"a.b/c:1","digest":"sha256:0","mediaType":"m","platforms":[]}]"#;
    let program = |name: &str, version: &str, arch: &str| {
        let part = format!(
            r#""programs":[{{"name":"{name}","version":"{version}","arch":"{arch}","path":"oci-layout"}}]"#
        );
        of("oci-layout").replace("\"programs\":[]", &part)
    };
    let evil = r"\u001b[2J";
    let named = |name: &str, kind: &str, arch: &str| {
        let digest = format!("sha256:{}", kk_util::sha256(content));
        let platform = format!(r#"{{"arch":"{arch}","digest":"{digest}","mediaType":"{kind}","blobs":[]}}"#);
        let part = format!(
            r#""images":[{{"name":"a.b/c:1","digest":"{digest}","mediaType":"{kind}","platforms":[{platform}]}}]"#
        );
        let text = of(&format!("blobs/sha256/{}", kk_util::sha256(content)));
        text.replace("\"images\":[]", &part).replace("\"name\":\"test\"", &format!(r#""name":"{name}""#))
    };
    assert!(program("runc", "1.0.0-rc.1+x", "amd64") != of("oci-layout"));
    bundle(&path, named("test", "application/vnd.oci.image.manifest.v1+json", "amd64").as_bytes(), &[]);
    assert!(index(&path).is_ok());
    let digest = image.replace("sha256:0", evil);
    for (reason, text) in [
        ("cannot be the name of a program", program(evil, "1", "amd64")),
        ("cannot be the version of a program", program("runc", evil, "amd64")),
        ("cannot be the architecture of a program", program("runc", "1", evil)),
        ("cannot be the name of a bundle", named(evil, "m", "amd64")),
        ("cannot be the type of an image", named("test", evil, "amd64")),
        ("cannot be the architecture of an image", named("test", "m", evil)),
        ("is missing, a part of a.b/c:1", of("oci-layout").replace("\"images\":[]", &digest)),
        ("cannot be read", of("oci-layout").replace("\"format\":1", &format!("\"format\":1,\"{evil}\":1"))),
        ("its format is 4", of("oci-layout").replace("\"format\":1", "\"format\":4,\"new\":[]")),
        ("does not match its content", of("oci-layout").replace("\"format\":1", "\"format\":2")),
        ("cannot be read", of("oci-layout").replace("\"format\":1", "\"format\":1,\"new\":[]")),
        ("cannot be read", "{".to_owned()),
        ("cannot be a path", of("../etc/passwd")),
        ("cannot be a path", of("/etc/passwd")),
        ("cannot be a path", of("programs/etcd/v1/../x")),
        ("cannot be a path", of("programs/etcd/v1/amd64/.hidden")),
        ("cannot be a path", of("blobs/sha256/short")),
        ("has another SHA-256", of(&format!("blobs/sha256/{}", "0".repeat(64)))),
        ("is there twice", twice),
        ("is missing, a part of a.b/c:1", of("oci-layout").replace("\"images\":[]", image)),
    ] {
        bundle(&path, text.as_bytes(), &[]);
        let said = index(&path).expect_err(reason).to_string();
        assert!(said.contains(reason) && !said.contains(char::is_control), "{reason}: {said:?}");
    }
}

#[test]
fn what_is_no_bundle_is_named_as_such() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("x.tar.zst");
    fs::write(&path, "just text").unwrap();
    assert!(refused(&path).contains("it is not a bundle of kk"));
    let mut tar = Vec::new();
    entry(&mut tar, "images/index.json", b'0', b"{}");
    pack(&path, &tar);
    assert!(refused(&path).contains("it does not begin with kk-bundle.json"));
    // An index of more than 16 MiB must not be read into memory.
    let mut tar = Vec::new();
    entry(&mut tar, "kk-bundle.json", b'0', &vec![b' '; (16 << 20) + 1]);
    pack(&path, &tar);
    assert!(refused(&path).contains("its index is larger than"));
}

#[test]
fn a_bundle_cannot_replace_a_program_that_the_catalogue_knows() {
    let version =
        Catalogue::builtin().versions(crate::Component::Runc, kk_config::Arch::Amd64).last().unwrap().clone();
    let place = format!("programs/runc/v{version}/amd64/runc.amd64");
    let mut index = index_of(&[(&place, b"evil")]);
    let part = |path: &str, version: &str| super::super::ProgramPart {
        name: "runc".into(),
        version: version.into(),
        arch: "amd64".into(),
        path: path.into(),
    };
    index.programs.push(part(&place, &version.to_string()));
    let error = Catalogue::builtin().with_bundle(Path::new("x"), &index).unwrap_err().to_string();
    assert!(error.contains("is not the file that the catalogue knows"), "{error}");
    let mut index = index_of(&[("programs/runc/v9.9.9/amd64/other", b"x")]);
    index.programs.push(part("programs/runc/v9.9.9/amd64/other", "9.9.9"));
    let error = Catalogue::builtin().with_bundle(Path::new("x"), &index).unwrap_err().to_string();
    assert!(error.contains("has a name that the catalogue does not know"), "{error}");
}
