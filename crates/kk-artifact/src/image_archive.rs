//! An image in a local archive: an OCI image layout as a tar file whose index contains the full name of the image, as written by
//! `docker save` and `ctr images export`.

use std::{
    collections::BTreeMap,
    fs::File,
    io::{self, Read as _},
    path::{Path, PathBuf},
};

use kk_config::Arch;
use serde_json::Value;

use crate::{hashing::Hashing, oci::arch_of_configuration};

/// Documents of an image are smaller; layers are larger and not needed.
const LARGEST_DOCUMENT: u64 = 1 << 20;
/// All documents of an image together are far smaller.
const ALL_DOCUMENTS: u64 = 64 << 20;
/// Indexes may be nested up to this depth.
const DEPTH: usize = 3;

/// An archive with one image, whose documents were read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImageArchive {
    /// The path of the archive.
    pub path: PathBuf,
    /// The full name under which a runtime imports the image.
    pub name: String,
    /// `sha256:…` of its manifest or index: the digest of that name after the import.
    pub digest: String,
    /// Architectures of hosts that can run it.
    pub architectures: Vec<Arch>,
}

impl ImageArchive {
    /// Reads the documents of an archive. Layers are skipped.
    ///
    /// # Errors
    /// Why it cannot be used, as text that continues a sentence after its name.
    pub fn open(path: &Path) -> Result<Self, String> {
        let documents = documents(path).map_err(|error| format!("cannot be read: {error}"))?;
        let index = documents
            .get("index.json")
            .ok_or("is no archive of an image in OCI's layout: it has no index.json")?;
        let index = json(index)?;
        let entries = index["manifests"].as_array().map(Vec::as_slice).unwrap_or_default();
        let [entry] = entries else {
            return Err(format!("holds {} images, and one is needed", entries.len()));
        };
        let name = entry["annotations"]["io.containerd.image.name"].as_str();
        let name =
            name.ok_or("does not say the full name of its image (io.containerd.image.name in index.json)")?;
        let digest = entry["digest"].as_str().ok_or("has an index.json without a digest")?;
        let mut architectures = Vec::new();
        collect(&documents, digest, DEPTH, &mut architectures)?;
        let (name, digest) = (name.to_owned(), digest.to_owned());
        Ok(Self { path: path.to_owned(), name, digest, architectures })
    }

    /// The SHA-256 of the whole file.
    pub fn sum(&self) -> io::Result<String> {
        let mut hashing = Hashing::new(io::sink());
        hashing.copy_from(File::open(&self.path)?)?;
        Ok(hashing.finish().0.to_string())
    }
}

/// The small files of a tar file by their paths.
fn documents(path: &Path) -> io::Result<BTreeMap<String, Vec<u8>>> {
    let mut archive = tar::Archive::new(File::open(path)?);
    let (mut documents, mut total) = (BTreeMap::new(), 0);
    for entry in archive.entries_with_seek()? {
        let mut entry = entry?;
        if entry.size() > LARGEST_DOCUMENT || !entry.header().entry_type().is_file() {
            continue;
        }
        let name = entry.path()?.to_string_lossy().trim_start_matches("./").to_owned();
        if name != "index.json" && !name.starts_with("blobs/") {
            continue;
        }
        total += entry.size();
        if total > ALL_DOCUMENTS {
            return Err(io::Error::other("it holds far more documents than an image has"));
        }
        let mut bytes = Vec::new();
        entry.read_to_end(&mut bytes)?;
        documents.insert(name, bytes);
    }
    Ok(documents)
}

/// The architectures of a manifest, or of all manifests of an index.
fn collect(
    documents: &BTreeMap<String, Vec<u8>>,
    digest: &str,
    depth: usize,
    into: &mut Vec<Arch>,
) -> Result<(), String> {
    let blob = |digest: &str| {
        let path = format!("blobs/{}", digest.replacen(':', "/", 1));
        documents.get(&path).ok_or(format!("lacks {path}"))
    };
    let document = json(blob(digest)?)?;
    if let Some(configuration) = document["config"]["digest"].as_str() {
        into.extend(arch_of_configuration(blob(configuration)?)?);
        return Ok(());
    }
    let entries = document["manifests"].as_array().filter(|_| depth > 0);
    for entry in entries.ok_or(format!("has neither a manifest nor an index in {digest}"))? {
        // The archive may omit a platform.
        let inner = entry["digest"].as_str().unwrap_or_default();
        if blob(inner).is_ok() {
            collect(documents, inner, depth - 1, into)?;
        }
    }
    Ok(())
}

fn json(bytes: &[u8]) -> Result<Value, String> {
    serde_json::from_slice(bytes).map_err(|error| format!("contains a document that is not JSON: {error}"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// A tar file of these documents, and a layer.
    fn archive(documents: &[(&str, Value)]) -> (tempfile::TempDir, PathBuf) {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("image.tar");
        let mut tar = tar::Builder::new(File::create(&path).unwrap());
        let mut add = |name: &str, bytes: &[u8]| {
            let mut header = tar::Header::new_gnu();
            header.set_size(bytes.len() as u64);
            header.set_cksum();
            tar.append_data(&mut header, name, bytes).unwrap();
        };
        add("blobs/sha256/layer", &vec![0; 3 << 20]);
        for (name, document) in documents {
            add(name, document.to_string().as_bytes());
        }
        tar.finish().unwrap();
        (directory, path)
    }

    fn index(digest: &str) -> (&'static str, Value) {
        let annotations = json!({"io.containerd.image.name": "docker.io/library/a:1"});
        ("index.json", json!({"manifests": [{"digest": digest, "annotations": annotations}]}))
    }

    fn configuration(arch: &str) -> Value {
        let rootfs = json!({"type": "layers", "diff_ids": []});
        json!({"architecture": arch, "os": "linux", "rootfs": rootfs, "config": {}})
    }

    #[test]
    fn an_image_and_an_index_say_their_architectures() {
        let manifest = |config: &str| json!({"config": {"digest": format!("sha256:{config}")}});
        let one = [
            index("sha256:m1"),
            ("blobs/sha256/m1", manifest("c1")),
            ("blobs/sha256/c1", configuration("arm64")),
        ];
        let several = [
            index("sha256:i"),
            (
                "blobs/sha256/i",
                json!({"manifests": [{"digest": "sha256:m1"}, {"digest": "sha256:m2"}, {"digest": "sha256:gone"}]}),
            ),
            ("blobs/sha256/m1", manifest("c1")),
            ("blobs/sha256/m2", manifest("c2")),
            ("blobs/sha256/c1", configuration("arm64")),
            ("blobs/sha256/c2", configuration("amd64")),
        ];
        for (documents, digest, architectures) in [
            (&one[..], "sha256:m1", vec![Arch::Arm64]),
            (&several[..], "sha256:i", vec![Arch::Arm64, Arch::Amd64]),
        ] {
            let (_directory, path) = archive(documents);
            let name = "docker.io/library/a:1".to_owned();
            let expected =
                ImageArchive { path: path.clone(), name, digest: digest.to_owned(), architectures };
            assert_eq!(ImageArchive::open(&path), Ok(expected));
        }
    }

    #[test]
    fn what_cannot_be_used_is_named() {
        let without_name = ("index.json", json!({"manifests": [{"digest": "sha256:m"}]}));
        let two = ("index.json", json!({"manifests": [{}, {}]}));
        for (documents, why) in [
            (&[][..], "no index.json"),
            (&[without_name][..], "full name"),
            (&[two][..], "holds 2 images"),
            (&[index("sha256:m")][..], "lacks blobs/sha256/m"),
            (&[index("sha256:m"), ("blobs/sha256/m", json!({}))][..], "neither"),
        ] {
            let (_directory, path) = archive(documents);
            let error = ImageArchive::open(&path).unwrap_err();
            assert!(error.contains(why), "{error}");
        }
        assert!(ImageArchive::open(Path::new("/nowhere")).unwrap_err().contains("cannot be read"));
        assert!(ImageArchive::open(Path::new("/etc/passwd")).is_err());
    }
}
