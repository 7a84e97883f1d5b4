//! Bundles whose files match the index, but whose index contradicts the images' documents.

use std::path::Path;

use serde_json::{Value, json};

use super::super::{BundleIndex, FilePart, ImagePart, import, read, verify};
use super::exports::Site;
use super::{File, bundle};
use crate::Catalogue;

/// The change of a bundle, and the expected reason for the refusal.
pub(super) type Case = (&'static str, fn(&mut Parts));

/// Each of these changes of the bundle `a.tar.zst` of a site must be refused when the bundle is inspected. Unless the reason
/// begins with `by_index`, it must also be refused by an import for which a consistent index is given.
pub(super) async fn expect_refused(site: &Site, cases: &[Case], by_index: &str) {
    let path = site.file("b.tar.zst");
    for (number, (reason, change)) in cases.iter().enumerate() {
        let mut parts = Parts::of(&site.file("a.tar.zst"));
        change(&mut parts);
        parts.write(&path);
        let said = verify(&path).expect_err(reason).to_string();
        assert!(said.contains(reason), "{number}: {said}");
        if reason.starts_with(by_index) {
            continue;
        }
        let store = site.store(&format!("store-{number}"), true);
        let said =
            import(&path, &parts.index, &Catalogue::builtin(), &store).await.expect_err(reason).to_string();
        assert!(said.contains(reason), "{number}: {said}");
    }
}

/// A bundle taken apart.
pub(super) struct Parts {
    pub(super) index: BundleIndex,
    files: Vec<(String, Vec<u8>)>,
}

impl Parts {
    pub(super) fn of(path: &Path) -> Self {
        let mut files = Vec::new();
        let index = read::walk(path, |file, content| {
            let mut bytes = Vec::new();
            content.read_to_end(&mut bytes)?;
            files.push((file.path.clone(), bytes));
            Ok(())
        });
        Self { index: index.unwrap(), files }
    }

    /// Reassembles the bundle, with matching checksums.
    pub(super) fn write(&mut self, path: &Path) {
        let part = |(name, bytes): &(String, Vec<u8>)| FilePart {
            path: name.clone(),
            size: bytes.len() as u64,
            sha256: kk_util::sha256(bytes),
        };
        self.index.files = self.files.iter().map(part).collect();
        let files: Vec<File<'_>> = self.files.iter().map(|(name, bytes)| (&**name, b'0', &**bytes)).collect();
        bundle(path, &serde_json::to_vec(&self.index).unwrap(), &files);
    }

    /// The content of a file.
    pub(super) fn bytes(&mut self, path: &str) -> &mut Vec<u8> {
        &mut self.files.iter_mut().find(|(name, _)| name == path).unwrap().1
    }

    fn change(&mut self, what: impl FnOnce(&mut ImagePart)) {
        what(&mut self.index.images[0]);
    }

    /// Edits the document with this digest, stores it under its new digest, and returns the new digest.
    fn edit(&mut self, digest: &str, what: impl FnOnce(&mut Value)) -> String {
        let path = format!("blobs/{}", digest.replace(':', "/"));
        let (name, bytes) = self.files.iter_mut().find(|(name, _)| *name == path).unwrap();
        let mut value: Value = serde_json::from_slice(bytes).unwrap();
        what(&mut value);
        *bytes = value.to_string().into_bytes();
        *name = format!("blobs/sha256/{}", kk_util::sha256(&*bytes));
        format!("sha256:{}", kk_util::sha256(&*bytes))
    }

    fn layout(&mut self, what: impl FnOnce(&mut Value)) {
        let bytes = self.bytes("index.json");
        let mut value: Value = serde_json::from_slice(bytes).unwrap();
        what(&mut value);
        *bytes = value.to_string().into_bytes();
    }

    /// Edits the index of the image, and updates all references to it.
    fn edit_index(&mut self, what: impl FnOnce(&mut Value)) {
        let digest = self.index.images[0].digest.clone();
        let digest = self.edit(&digest, what);
        self.change(|image| image.digest.clone_from(&digest));
        self.layout(|layout| layout["manifests"][0]["digest"] = json!(digest));
    }
}

const CASES: [Case; 9] = [
    ("its type is", |parts| parts.change(|image| image.media_type = "application/x".into())),
    ("an architecture is amd64, not arm64", |parts| {
        parts.change(|image| image.platforms[0].arch = "arm64".into());
    }),
    ("its manifest names other content", |parts| {
        parts.change(|image| drop(image.platforms[0].blobs.pop()));
    }),
    ("its manifest names other content", |parts| {
        parts.change(|image| image.platforms[0].blobs.reverse());
    }),
    ("its index does not name", |parts| {
        parts.change(|image| {
            let mut second = image.platforms[0].clone();
            second.digest.clone_from(&image.digest);
            image.platforms.push(second);
        });
    }),
    ("index.json names other images", |parts| {
        parts.layout(|layout| layout["manifests"] = json!([]));
    }),
    ("bytes, not 7", |parts| {
        parts.edit_index(|index| index["manifests"][0]["size"] = json!(7));
    }),
    ("is missing", |parts| {
        let other = json!({"mediaType": "application/vnd.oci.image.manifest.v1+json", "size": 7,
            "digest": format!("sha256:{}", "0".repeat(64))});
        parts.edit_index(|index| index["manifests"].as_array_mut().unwrap().push(other));
    }),
    ("is not an image type", |parts| {
        parts.edit_index(|index| index["mediaType"] = json!("\u{1b}[2J"));
    }),
];

#[tokio::test]
async fn an_index_that_the_documents_contradict_is_refused() {
    let site = Site::new().await;
    site.export(&site.manifest("amd64", "team/app:v1"), "store", "a.tar.zst").await.unwrap();
    let path = site.file("b.tar.zst");
    Parts::of(&site.file("a.tar.zst")).write(&path);
    verify(&path).unwrap();
    for (number, (reason, change)) in CASES.into_iter().enumerate() {
        let mut parts = Parts::of(&site.file("a.tar.zst"));
        change(&mut parts);
        parts.write(&path);
        let said = verify(&path).expect_err(reason).to_string();
        assert!(said.contains(reason) && !said.contains(char::is_control), "{number} {reason}: {said:?}");
        if reason.starts_with("index.json") {
            continue;
        }
        // A create does not read a bundle twice, so the import compares, too, even if all content is present.
        let store = site.store(&format!("store-{number}"), true);
        let catalogue = Catalogue::builtin().with_bundle(&path, &parts.index).unwrap();
        for _ in 0..2 {
            let said = import(&path, &parts.index, &catalogue, &store).await.expect_err(reason).to_string();
            assert!(said.contains(reason), "{number} {reason}: {said:?}");
        }
    }
}

#[tokio::test]
async fn an_image_without_an_index_and_one_named_by_its_digest_are_compared_too() {
    let site = Site::new().await;
    let by_digest = format!("team/app@{}", site.pushed.index_digest);
    site.export(&site.manifest("amd64", &by_digest), "store", "digest.tar.zst").await.unwrap();
    verify(&site.file("digest.tar.zst")).unwrap();
    let index = Parts::of(&site.file("digest.tar.zst")).index;
    let single = format!("team/app@{}", index.images[0].platforms[0].digest);
    site.export(&site.manifest("amd64", &single), "store", "single.tar.zst").await.unwrap();
    let path = site.file("single.tar.zst");
    let mut parts = Parts::of(&path);
    verify(&path).unwrap();
    parts.change(|image| image.platforms[0].arch = "arm64".into());
    parts.write(&path);
    let said = verify(&path).unwrap_err().to_string();
    assert!(said.contains("its architecture is amd64, not arm64"), "{said}");
}
