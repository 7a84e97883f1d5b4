//! The store against a real HTTP server that misbehaves on purpose.

mod archives;
mod downloads;
mod reach;
pub(crate) mod server;
mod trust;

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use axum::http::{Method, StatusCode};
use flate2::Compression;
use flate2::write::GzEncoder;
use tar::EntryType;
use tempfile::TempDir;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

use self::server::{Fault, Server};
use super::*;
use crate::hashing::Hashing;
use crate::{Catalogue, Checksum};

const KUBEADM: &str = "/dl.k8s.io/release/v1.99.0/bin/linux/amd64/kubeadm";
const ETCD: &str = "/github.com/etcd-io/etcd/releases/download/v3.99.0/etcd-v3.99.0-linux-amd64.tar.gz";
const CNI: &str =
    "/github.com/containernetworking/plugins/releases/download/v1.99.0/cni-plugins-linux-amd64-v1.99.0.tgz";

fn sum_of(bytes: &[u8]) -> String {
    let mut hashing = Hashing::new(std::io::sink());
    hashing.copy_from(bytes).unwrap();
    hashing.finish().0.to_string()
}

/// Bytes without repetition, so that a part at the wrong position is detected.
fn program(size: usize) -> Vec<u8> {
    (0..size).map(|i| u8::try_from((i * 31 + i / 251) % 256).unwrap()).collect()
}

/// A `.tar.gz` of (path, mode, content).
fn archive(members: &[(&str, u32, &[u8])]) -> Vec<u8> {
    let mut tar = tar::Builder::new(GzEncoder::new(Vec::new(), Compression::fast()));
    for (path, mode, content) in members {
        let mut header = tar::Header::new_gnu();
        // Written raw, because the crate refuses to write an attacker's paths.
        header.as_old_mut().name[..path.len()].copy_from_slice(path.as_bytes());
        header.set_entry_type(if content.is_empty() { EntryType::Symlink } else { EntryType::Regular });
        header.set_mode(*mode);
        header.set_size(content.len() as u64);
        header.set_cksum();
        tar.append(&header, *content).unwrap();
    }
    tar.into_inner().unwrap().finish().unwrap()
}

/// An etcd release in upstream's format.
fn etcd_archive() -> Vec<u8> {
    archive(&[
        ("etcd-v3.99.0-linux-amd64/README.md", 0o644, b"read me"),
        ("etcd-v3.99.0-linux-amd64/etcd", 0o755, &program(300_000)),
        ("etcd-v3.99.0-linux-amd64/etcdctl", 0o755, b"ctl"),
        ("etcd-v3.99.0-linux-amd64/etcdutl", 0o755, b"utl"),
    ])
}

/// A server, a store, and the catalogue for both.
struct Bench {
    server: Server,
    dir: TempDir,
    store: Store,
    news: UnboundedReceiver<Progress>,
    progress: UnboundedSender<Progress>,
}

impl Bench {
    async fn plain() -> Self {
        Self::new(Server::plain().await)
    }

    fn new(server: Server) -> Self {
        let dir = TempDir::new().unwrap();
        let store = store(dir.path(), &server.ca);
        let (progress, news) = unbounded_channel();
        Self { server, dir, store, news, progress }
    }

    /// kubeadm v1.99.0 with the sum of `bytes` in the user's catalogue.
    fn kubeadm(&self, bytes: &[u8]) -> Artifact {
        self.artifact(Component::Kubeadm, "1.99.0", bytes)
    }

    fn artifact(&self, component: Component, version: &str, bytes: &[u8]) -> Artifact {
        let own = format!("{component}: {{amd64: {{{version}: {}}}}}", sum_of(bytes));
        self.catalogue()
            .with_user("own.yaml", &own)
            .unwrap()
            .resolve(component, version, Arch::Amd64)
            .unwrap()
    }

    fn catalogue(&self) -> Catalogue {
        Catalogue::builtin().with_mirror(&self.server.base()).unwrap()
    }

    async fn fetch(&self, artifact: &Artifact) -> Result<Vec<LocalFile>, Error> {
        self.store.fetch(artifact, &self.progress, &CancellationToken::new()).await
    }

    /// `Range` of each `GET`, in their order.
    fn ranges(&self) -> Vec<Option<String>> {
        let requests = self.server.requests().into_iter();
        requests.filter(|seen| seen.method == Method::GET).map(|seen| seen.range).collect()
    }

    /// Files below the directory other than locks, records and the CA.
    fn files(&self) -> Vec<String> {
        let mut files = Vec::new();
        walk(self.dir.path(), &mut files);
        files.retain(|name| !matches!(name.rsplit('.').next(), Some("lock" | "json" | "pem")));
        files.sort();
        files
    }

    fn part(&self) -> PathBuf {
        self.dir.path().join("kubeadm/v1.99.0/amd64/.kubeadm.part")
    }
}

fn store(dir: &Path, ca: &str) -> Store {
    let mut settings = StoreSettings::new(dir);
    settings.retry = Retry { tries: 3, wait: Duration::from_millis(5) };
    if !ca.is_empty() {
        let file = dir.join("ca.pem");
        fs::write(&file, ca).unwrap();
        settings.ca_file = Some(file);
    }
    Store::new(settings).unwrap()
}

fn walk(dir: &Path, files: &mut Vec<String>) {
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            walk(&path, files);
        } else {
            files.push(path.file_name().unwrap().to_str().unwrap().to_owned());
        }
    }
}

#[tokio::test]
async fn a_program_is_fetched_once_and_then_found_without_network() {
    let bench = Bench::plain().await;
    let bytes = program(2_000_000);
    bench.server.put(KUBEADM, &bytes);
    let artifact = bench.kubeadm(&bytes);
    assert_eq!(bench.store.cached(&artifact).await, None);

    let files = bench.fetch(&artifact).await.unwrap();
    let path = bench.dir.path().join("kubeadm/v1.99.0/amd64/kubeadm");
    let sha256 = sum_of(&bytes);
    let expected = LocalFile { name: "kubeadm".into(), path, sha256, size: 2_000_000, mode: 0o755 };
    assert_eq!(files, [expected]);
    assert_eq!(fs::read(&files[0].path).unwrap(), bytes);
    assert_eq!(fs::metadata(&files[0].path).unwrap().permissions().mode() & 0o777, 0o755);
    assert_eq!(bench.files(), ["kubeadm"]);

    assert_eq!(bench.fetch(&artifact).await.unwrap(), files);
    assert_eq!(bench.ranges().len(), 1);
    drop(bench.server);
    assert_eq!(bench.store.cached(&artifact).await, Some(files));
}

#[tokio::test]
async fn two_stores_on_one_directory_download_once() {
    let bench = Bench::plain().await;
    let bytes = etcd_archive();
    bench.server.put(ETCD, &bytes);
    let artifact = bench.artifact(Component::Etcd, "3.99.0", &bytes);
    let other = store(bench.dir.path(), "");
    let never = CancellationToken::new();
    let (one, two, three) = tokio::join!(
        bench.fetch(&artifact),
        bench.fetch(&artifact),
        other.fetch(&artifact, &bench.progress, &never)
    );
    assert_eq!(one.unwrap(), three.unwrap());
    assert_eq!(two.unwrap().len(), 3);
    assert_eq!(bench.ranges().len(), 1);
}

#[tokio::test]
async fn what_was_changed_on_the_disk_is_made_again_or_downloaded_again() {
    let bench = Bench::plain().await;
    let bytes = etcd_archive();
    bench.server.put(ETCD, &bytes);
    let artifact = bench.artifact(Component::Etcd, "3.99.0", &bytes);
    let files = bench.fetch(&artifact).await.unwrap();

    // Same size and same modification time, like an attacker who hides the change.
    let etcdctl = &files[1].path;
    let modified = fs::metadata(etcdctl).unwrap().modified().unwrap();
    fs::write(etcdctl, b"bad").unwrap();
    fs::File::options().write(true).open(etcdctl).unwrap().set_modified(modified).unwrap();
    assert_eq!(bench.store.cached(&artifact).await.as_ref(), Some(&files));
    assert_eq!(fs::read(etcdctl).unwrap(), b"ctl");
    assert_eq!(bench.ranges().len(), 1);

    let published = bench.dir.path().join("etcd/v3.99.0/amd64/etcd-v3.99.0-linux-amd64.tar.gz");
    fs::write(&published, b"bad").unwrap();
    assert_eq!(bench.store.cached(&artifact).await, None);
    assert_eq!(bench.fetch(&artifact).await.unwrap(), files);
    assert_eq!(bench.ranges().len(), 2);
}

#[tokio::test]
async fn another_sum_in_the_catalogue_is_not_satisfied_by_the_old_file() {
    let bench = Bench::plain().await;
    bench.server.put(KUBEADM, b"old");
    bench.fetch(&bench.kubeadm(b"old")).await.unwrap();
    bench.server.put(KUBEADM, b"new");
    let artifact = bench.kubeadm(b"new");
    assert_eq!(bench.store.cached(&artifact).await, None);
    let files = bench.fetch(&artifact).await.unwrap();
    assert_eq!(fs::read(&files[0].path).unwrap(), b"new");
}

#[tokio::test]
async fn a_file_put_there_by_hand_is_taken_if_its_sum_is_right() {
    let bench = Bench::plain().await;
    let artifact = bench.kubeadm(b"program");
    let path = bench.dir.path().join("kubeadm/v1.99.0/amd64/kubeadm");
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&path, b"wrong").unwrap();
    assert_eq!(bench.store.cached(&artifact).await, None);
    assert_eq!(fs::read(&path).unwrap(), b"wrong");
    fs::write(&path, b"program").unwrap();
    assert_eq!(bench.fetch(&artifact).await.unwrap()[0].path, path);
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o755);
    assert!(bench.server.requests().is_empty());
}

#[tokio::test]
async fn a_directory_that_cannot_be_written_is_named() {
    let bench = Bench::plain().await;
    // A file at the path of a needed directory stops even root.
    fs::write(bench.dir.path().join("kubeadm"), b"").unwrap();
    let error = bench.fetch(&bench.kubeadm(b"x")).await.unwrap_err().to_string();
    assert!(error.contains("cannot make") && error.contains("kubeadm/v1.99.0/amd64"), "{error}");
}
