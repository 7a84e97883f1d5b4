//! Bundles made from a real HTTP server, and bundles that were tampered with.

mod charts;
mod compared;
mod damaged;
mod deltas;
mod exports;
mod fuzz;
mod packages;
mod registry;
mod rpms;

use std::io::{Read as _, Write as _};
use std::path::Path;

use super::index::{BundleIndex, FilePart};

/// An index of these files alone.
fn index_of(files: &[(&str, &[u8])]) -> BundleIndex {
    let part = |(path, content): &(&str, &[u8])| FilePart {
        path: (*path).to_owned(),
        size: content.len() as u64,
        sha256: kk_util::sha256(content),
    };
    let files = files.iter().map(part).collect();
    BundleIndex {
        format: 1,
        name: "test".into(),
        programs: Vec::new(),
        images: Vec::new(),
        packages: Vec::new(),
        charts: Vec::new(),
        manifests: Vec::new(),
        files,
    }
}

/// A file of a tar, written raw, because the crate refuses to write an attacker's paths.
fn entry(tar: &mut Vec<u8>, path: &str, kind: u8, content: &[u8]) {
    sized_entry(tar, path, kind, content, content.len() as u64);
}

/// The same for a file whose header declares another size.
fn sized_entry(tar: &mut Vec<u8>, path: &str, kind: u8, content: &[u8], size: u64) {
    let mut header = tar::Header::new_ustar();
    header.as_old_mut().name[..path.len()].copy_from_slice(path.as_bytes());
    header.as_old_mut().linkflag = [kind];
    header.set_mode(0o644);
    header.set_size(size);
    header.set_cksum();
    tar.extend_from_slice(header.as_bytes());
    tar.extend_from_slice(content);
    tar.resize(tar.len().next_multiple_of(512), 0);
}

/// Path, type and content of a file of a tar.
type File<'a> = (&'a str, u8, &'a [u8]);

/// A bundle with this index and these files, packed.
fn bundle(path: &Path, index: &[u8], files: &[File<'_>]) {
    let mut tar = Vec::new();
    entry(&mut tar, "kk-bundle.json", b'0', index);
    for (path, kind, content) in files {
        entry(&mut tar, path, *kind, content);
    }
    tar.resize(tar.len() + 1024, 0);
    pack(path, &tar);
}

fn pack(path: &Path, tar: &[u8]) {
    let mut encoder = zstd::stream::write::Encoder::new(std::fs::File::create(path).unwrap(), 1).unwrap();
    encoder.include_checksum(true).unwrap();
    encoder.write_all(tar).unwrap();
    encoder.finish().unwrap();
}

/// A file of a tar.
#[derive(Clone)]
struct Member {
    path: String,
    kind: u8,
    content: Vec<u8>,
}

/// The files of a bundle or a delta.
fn members(path: &Path) -> Vec<Member> {
    let unpacked = zstd::stream::read::Decoder::new(std::fs::File::open(path).unwrap()).unwrap();
    let mut archive = tar::Archive::new(unpacked);
    let member = |entry: std::io::Result<tar::Entry<'_, _>>| {
        let mut entry = entry.unwrap();
        let path = entry.path().unwrap().display().to_string();
        let mut content = Vec::new();
        entry.read_to_end(&mut content).unwrap();
        Member { path, kind: b'0', content }
    };
    archive.entries().unwrap().map(member).collect()
}
