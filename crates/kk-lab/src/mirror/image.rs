//! OCI images of one uncompressed layer, written straight into docker-registry's storage: no push, no daemon, and a
//! pull costs the hosts no decompression. Layout of the storage: `docker/registry/v2/{blobs,repositories}` as the
//! distribution registry documents it for its filesystem driver.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::mirror::versions::arch;
use crate::sys::files::write_whole;

const MANIFEST_TYPE: &str = "application/vnd.oci.image.manifest.v1+json";
const CONFIG_TYPE: &str = "application/vnd.oci.image.config.v1+json";
const LAYER_TYPE: &str = "application/vnd.oci.image.layer.v1.tar";
const PATH: &str = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// A file or a link of an image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Source {
    File(PathBuf),
    /// A symbolic link with this target.
    Link(String),
}

/// Path in an image → what is there.
pub(crate) type Files = BTreeMap<String, Source>;

/// docker-registry's storage directory.
pub(crate) struct Storage {
    root: PathBuf,
}

struct Blob {
    /// `sha256:` and 64 digits.
    digest: String,
    size: u64,
}

impl Storage {
    pub(crate) fn new(directory: &Path) -> Self {
        Self { root: directory.join("docker/registry/v2") }
    }

    /// Whether all these repositories hold something.
    pub(crate) fn has(&self, repositories: &[String]) -> bool {
        repositories.iter().all(|name| self.root.join("repositories").join(name).exists())
    }

    /// Writes an image under every name and tag given.
    pub(crate) fn add(
        &self,
        repositories: &[String],
        tags: &BTreeSet<String>,
        entry: &str,
        files: &Files,
    ) -> Result<()> {
        let layer = self.layer(files)?;
        let config = json!({
            "architecture": arch(),
            "os": "linux",
            "config": { "Entrypoint": [entry], "Env": [PATH] },
            "rootfs": { "type": "layers", "diff_ids": [layer.digest] },
        });
        let config = self.document(&config)?;
        let manifest = self.document(&json!({
            "schemaVersion": 2,
            "mediaType": MANIFEST_TYPE,
            "config": { "mediaType": CONFIG_TYPE, "digest": config.digest, "size": config.size },
            "layers": [{ "mediaType": LAYER_TYPE, "digest": layer.digest, "size": layer.size }],
        }))?;
        for repository in repositories {
            let directory = self.root.join("repositories").join(repository);
            for blob in [&layer, &config] {
                link(&directory.join("_layers"), &blob.digest)?;
            }
            link(&directory.join("_manifests/revisions"), &manifest.digest)?;
            for tag in tags {
                let tag = directory.join("_manifests/tags").join(tag);
                link(&tag.join("index"), &manifest.digest)?;
                write_whole(&tag.join("current/link"), manifest.digest.as_bytes())?;
            }
        }
        Ok(())
    }

    fn layer(&self, files: &Files) -> Result<Blob> {
        fs::create_dir_all(&self.root)?;
        let unfinished = self.root.join("layer.unfinished");
        let mut tar = tar::Builder::new(Hashed::new(BufWriter::new(File::create(&unfinished)?)));
        let mut directories = BTreeSet::new();
        for name in ["etc", "tmp", "var"] {
            add_directory(
                &mut tar,
                &mut directories,
                Path::new(name),
                if name == "tmp" { 0o1777 } else { 0o755 },
            )?;
        }
        for (path, source) in files {
            for directory in Path::new(path).ancestors().skip(1).collect::<Vec<_>>().into_iter().rev() {
                add_directory(&mut tar, &mut directories, directory, 0o755)?;
            }
            add(&mut tar, path, source).with_context(|| format!("cannot add {path} to the image"))?;
        }
        let hashed = tar.into_inner()?;
        let size = hashed.size;
        let digest = hashed.finish()?;
        let data = self.blob_file(&digest);
        fs::create_dir_all(data.parent().context("a blob has a directory")?)?;
        fs::rename(unfinished, data)?;
        Ok(Blob { digest: format!("sha256:{digest}"), size })
    }

    fn document(&self, value: &Value) -> Result<Blob> {
        let text = value.to_string();
        let digest = kk_util::sha256(&text);
        write_whole(&self.blob_file(&digest), text.as_bytes())?;
        Ok(Blob { digest: format!("sha256:{digest}"), size: text.len() as u64 })
    }

    fn blob_file(&self, digest: &str) -> PathBuf {
        self.root.join("blobs/sha256").join(&digest[..2]).join(digest).join("data")
    }
}

fn link(directory: &Path, digest: &str) -> Result<()> {
    write_whole(&directory.join(digest.replace(':', "/")).join("link"), digest.as_bytes())
}

fn header(kind: tar::EntryType, mode: u32, size: u64) -> tar::Header {
    let mut header = tar::Header::new_gnu();
    header.set_entry_type(kind);
    header.set_mode(mode);
    header.set_size(size);
    header.set_mtime(0);
    header.set_uid(0);
    header.set_gid(0);
    header
}

fn add_directory<W: Write>(
    tar: &mut tar::Builder<W>,
    known: &mut BTreeSet<PathBuf>,
    directory: &Path,
    mode: u32,
) -> Result<()> {
    if directory.as_os_str().is_empty() || !known.insert(directory.to_owned()) {
        return Ok(());
    }
    tar.append_data(&mut header(tar::EntryType::Directory, mode, 0), directory, io::empty())?;
    Ok(())
}

fn add<W: Write>(tar: &mut tar::Builder<W>, path: &str, source: &Source) -> Result<()> {
    match source {
        Source::Link(target) => {
            tar.append_link(&mut header(tar::EntryType::Symlink, 0o777, 0), path, target)?;
        }
        Source::File(from) => add_file(tar, path, from)?,
    }
    Ok(())
}

/// Appends a file; owner root, time 0, and its own permissions, so that the same content gives the same archive.
pub(crate) fn add_file<W: Write>(tar: &mut tar::Builder<W>, path: &str, from: &Path) -> Result<()> {
    let file = File::open(from).with_context(|| format!("cannot read {}", from.display()))?;
    let about = file.metadata()?;
    let mode = about.permissions().mode() & 0o777;
    tar.append_data(&mut header(tar::EntryType::Regular, mode, about.len()), path, file)?;
    Ok(())
}

/// Counts and hashes what passes through.
struct Hashed<W> {
    inner: W,
    sha: Sha256,
    size: u64,
}

impl<W: Write> Hashed<W> {
    fn new(inner: W) -> Self {
        Self { inner, sha: Sha256::new(), size: 0 }
    }

    fn finish(mut self) -> io::Result<String> {
        self.inner.flush()?;
        Ok(kk_util::hex(self.sha.finalize()))
    }
}

impl<W: Write> Write for Hashed<W> {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        let written = self.inner.write(buffer)?;
        self.sha.update(&buffer[..written]);
        self.size += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_written_image_is_complete_by_its_digests() {
        let directory = tempfile::tempdir().unwrap();
        let program = directory.path().join("program");
        fs::write(&program, "hello").unwrap();
        let storage = Storage::new(directory.path());
        let files = Files::from([
            ("usr/bin/program".to_owned(), Source::File(program)),
            ("bin".to_owned(), Source::Link("usr/bin".into())),
        ]);
        storage.add(&["a/b".into()], &["v1".into(), "v2".into()].into(), "/usr/bin/program", &files).unwrap();

        let repository = directory.path().join("docker/registry/v2/repositories/a/b");
        let current = |tag: &str| {
            fs::read_to_string(repository.join("_manifests/tags").join(tag).join("current/link")).unwrap()
        };
        assert_eq!(current("v1"), current("v2"));
        let blob = |digest: &str| {
            let data = fs::read(storage.blob_file(digest.strip_prefix("sha256:").unwrap())).unwrap();
            assert_eq!(format!("sha256:{}", kk_util::sha256(&data)), digest);
            data
        };
        let manifest: Value = serde_json::from_slice(&blob(&current("v1"))).unwrap();
        let layer = blob(manifest["layers"][0]["digest"].as_str().unwrap());
        let config: Value =
            serde_json::from_slice(&blob(manifest["config"]["digest"].as_str().unwrap())).unwrap();
        assert_eq!(config["rootfs"]["diff_ids"][0], manifest["layers"][0]["digest"]);
        let mut archive = tar::Archive::new(layer.as_slice());
        let paths: Vec<_> = archive
            .entries()
            .unwrap()
            .map(|entry| entry.unwrap().path().unwrap().display().to_string())
            .collect();
        assert_eq!(paths, ["etc", "tmp", "var", "bin", "usr", "usr/bin", "usr/bin/program"]);
    }
}
