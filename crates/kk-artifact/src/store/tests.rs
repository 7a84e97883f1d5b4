//! The store against a real HTTP server that misbehaves on purpose.

mod server;

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

/// Bytes that differ everywhere, so that a part in the wrong place shows.
fn program(size: usize) -> Vec<u8> {
    (0..size).map(|i| u8::try_from((i * 31 + i / 251) % 256).unwrap()).collect()
}

/// A `.tar.gz` of (path, mode, content).
fn archive(members: &[(&str, u32, &[u8])]) -> Vec<u8> {
    let mut tar = tar::Builder::new(GzEncoder::new(Vec::new(), Compression::fast()));
    for (path, mode, content) in members {
        let mut header = tar::Header::new_gnu();
        // Written raw, because the crate refuses to write what an attacker would.
        header.as_old_mut().name[..path.len()].copy_from_slice(path.as_bytes());
        header.set_entry_type(if content.is_empty() { EntryType::Symlink } else { EntryType::Regular });
        header.set_mode(*mode);
        header.set_size(content.len() as u64);
        header.set_cksum();
        tar.append(&header, *content).unwrap();
    }
    tar.into_inner().unwrap().finish().unwrap()
}

/// An etcd release as upstream packs it.
fn etcd_archive() -> Vec<u8> {
    archive(&[
        ("etcd-v3.99.0-linux-amd64/README.md", 0o644, b"read me"),
        ("etcd-v3.99.0-linux-amd64/etcd", 0o755, &program(300_000)),
        ("etcd-v3.99.0-linux-amd64/etcdctl", 0o755, b"ctl"),
        ("etcd-v3.99.0-linux-amd64/etcdutl", 0o755, b"utl"),
    ])
}

/// One server, one store, and the catalogue between them.
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
async fn only_the_wanted_members_leave_an_archive() {
    let bench = Bench::plain().await;
    let bytes = etcd_archive();
    bench.server.put(ETCD, &bytes);
    let artifact = bench.artifact(Component::Etcd, "3.99.0", &bytes);
    let files = bench.fetch(&artifact).await.unwrap();
    let names: Vec<_> = files.iter().map(|file| file.name.as_str()).collect();
    assert_eq!(names, ["etcd", "etcdctl", "etcdutl"]);
    assert_eq!(files[0].sha256, sum_of(&program(300_000)));
    assert_eq!(fs::read(&files[1].path).unwrap(), b"ctl");
    assert_eq!(bench.files(), ["etcd", "etcd-v3.99.0-linux-amd64.tar.gz", "etcdctl", "etcdutl"]);
    assert_eq!(bench.store.cached(&artifact).await, Some(files));
}

#[tokio::test]
async fn only_executables_at_the_top_leave_the_archive_of_network_plugins() {
    let bench = Bench::plain().await;
    let bytes = archive(&[
        ("./bridge", 0o755, b"bridge"),
        ("./LICENSE", 0o644, b"text"),
        ("./link", 0o777, b""),
        ("./sub/evil", 0o755, b"evil"),
        ("../evil", 0o755, b"evil"),
        ("/evil", 0o755, b"evil"),
        ("loopback", 0o755, b"loopback"),
    ]);
    bench.server.put(CNI, &bytes);
    let files = bench.fetch(&bench.artifact(Component::CniPlugins, "1.99.0", &bytes)).await.unwrap();
    let names: Vec<_> = files.iter().map(|file| file.name.as_str()).collect();
    assert_eq!(names, ["bridge", "loopback"]);
    assert_eq!(bench.files(), ["bridge", "cni-plugins-linux-amd64-v1.99.0.tgz", "loopback"]);
}

#[tokio::test]
async fn an_archive_that_is_not_as_expected_is_refused() {
    let dir = "etcd-v3.99.0-linux-amd64";
    let (etcd, ctl, utl) = (format!("{dir}/etcd"), format!("{dir}/etcdctl"), format!("{dir}/etcdutl"));
    for (bytes, reason) in [
        (
            archive(&[(&etcd, 0o755, b"e"), (&ctl, 0o755, b"c")]),
            "etcd-v3.99.0-linux-amd64/etcdutl is not in it",
        ),
        (archive(&[(&etcd, 0o755, b""), (&ctl, 0o755, b"c"), (&utl, 0o755, b"u")]), "etcd is not a file"),
        (archive(&[(&etcd, 0o755, b"e"), (&etcd, 0o755, b"e")]), "etcd is there twice"),
        (b"<html>no archive</html>".to_vec(), "invalid gzip header"),
        (etcd_archive()[..1000].to_vec(), "etcd: incomplete deflate stream"),
    ] {
        let bench = Bench::plain().await;
        bench.server.put(ETCD, &bytes);
        let artifact = bench.artifact(Component::Etcd, "3.99.0", &bytes);
        let error = bench.fetch(&artifact).await.unwrap_err().to_string();
        assert!(error.contains(reason), "{error} instead of {reason}");
        assert_eq!(bench.store.cached(&artifact).await, None);
    }
}

#[tokio::test]
async fn what_cannot_pass_is_not_tried_again() {
    for (code, reason) in
        [(404, "does not exist (404)"), (403, "answers 403 Forbidden"), (410, "answers 410 Gone")]
    {
        let bench = Bench::plain().await;
        bench.server.put(KUBEADM, b"x");
        bench.server.faults([Fault::Status(StatusCode::from_u16(code).unwrap())]);
        let error = bench.fetch(&bench.kubeadm(b"x")).await.unwrap_err();
        assert_eq!(error.to_string(), format!("{}{KUBEADM} {reason}", bench.server.base()));
        assert!(error.hint().unwrap().contains("mirror"));
        assert_eq!(bench.ranges().len(), 1);
        assert!(bench.files().is_empty());
    }
}

#[tokio::test]
async fn a_broken_server_is_tried_again_and_then_given_up() {
    let mut bench = Bench::plain().await;
    bench.server.put(KUBEADM, b"program");
    let broken = Fault::Status(StatusCode::BAD_GATEWAY);
    bench.server.faults([broken.clone(), broken.clone()]);
    let artifact = bench.kubeadm(b"program");
    bench.fetch(&artifact).await.unwrap();
    assert_eq!(bench.ranges().len(), 3);
    let mut states = std::iter::from_fn(|| bench.news.try_recv().ok()).map(|news| news.state);
    assert!(matches!(states.next(), Some(ProgressState::Retrying { reason, .. }) if reason.contains("502")));
    assert_eq!(states.last(), Some(ProgressState::Finished));

    let bench = Bench::plain().await;
    bench.server.put(KUBEADM, b"program");
    bench.server.faults([broken.clone(), broken.clone(), broken]);
    let error = bench.fetch(&artifact_at(&bench, &artifact)).await.unwrap_err().to_string();
    assert!(error.ends_with("the server answers 502 Bad Gateway"), "{error}");
    assert_eq!(bench.ranges().len(), 3);
}

/// The same artifact behind another bench's server.
fn artifact_at(bench: &Bench, artifact: &Artifact) -> Artifact {
    Artifact { address: bench.kubeadm(b"").address, ..artifact.clone() }
}

#[tokio::test]
async fn a_cut_download_goes_on_where_it_ended() {
    let mut bench = Bench::plain().await;
    let bytes = program(3_000_000);
    bench.server.put(KUBEADM, &bytes);
    // More cuts than tries: each brings something new, so none of them counts.
    bench.server.faults([Fault::CutAfter(1_000_000), Fault::CutAfter(900_000), Fault::CutAfter(1_500_000)]);
    // The second and third fault answer the whole file again, as a server without ranges would.
    let files = bench.fetch(&bench.kubeadm(&bytes)).await.unwrap();
    assert_eq!(fs::read(&files[0].path).unwrap(), bytes);
    let tag = Some(format!("\"{}\"", sum_of(&bytes)));
    let requests = bench.server.requests();
    let starts: Vec<_> = requests.iter().map(|seen| seen.range.as_deref()).collect();
    assert_eq!(starts, [None, Some("bytes=1000000-"), Some("bytes=900000-"), Some("bytes=1500000-")]);
    assert!(requests[1..].iter().all(|seen| seen.if_range == tag), "{requests:?}");
    let started: Vec<_> = std::iter::from_fn(|| bench.news.try_recv().ok())
        .filter_map(|news| {
            if let ProgressState::Started { done, total } = news.state { Some((done, total)) } else { None }
        })
        .collect();
    let total = Some(3_000_000);
    assert_eq!(started, [(0, total), (0, total), (0, total), (1_500_000, total)]);
    assert_eq!(bench.files(), ["kubeadm"]);
}

#[tokio::test]
async fn a_server_without_ranges_is_read_from_the_beginning() {
    let bench = Bench::plain().await;
    let bytes = program(100_000);
    bench.server.put(KUBEADM, &bytes);
    bench.server.faults([Fault::CutAfter(40_000), Fault::NoRanges]);
    let files = bench.fetch(&bench.kubeadm(&bytes)).await.unwrap();
    assert_eq!(fs::read(&files[0].path).unwrap(), bytes);
}

#[tokio::test]
async fn a_part_from_an_earlier_run_is_used_only_if_it_fits() {
    let bytes = program(100_000);
    let half = &bytes[..50_000];
    let foreign = vec![7; 50_000];
    let too_long = vec![7; 200_000];
    let resumed = Some("bytes=50000-".to_owned());
    for (part, requests) in [
        (half, vec![resumed.clone()]),
        (&bytes[..], vec![]),
        (&foreign[..], vec![resumed, None]),
        (&too_long[..], vec![Some("bytes=200000-".to_owned()), None]),
    ] {
        let bench = Bench::plain().await;
        bench.server.put(KUBEADM, &bytes);
        fs::create_dir_all(bench.part().parent().unwrap()).unwrap();
        fs::write(bench.part(), part).unwrap();
        let files = bench.fetch(&bench.kubeadm(&bytes)).await.unwrap();
        assert_eq!(fs::read(&files[0].path).unwrap(), bytes);
        assert_eq!(bench.ranges(), requests);
        assert_eq!(bench.files(), ["kubeadm"]);
    }
}

#[tokio::test]
async fn a_file_that_changed_in_between_is_read_from_the_beginning() {
    let bench = Bench::plain().await;
    bench.server.put(KUBEADM, &program(80_000));
    bench.server.faults([Fault::CutAfter(30_000), Fault::Status(StatusCode::NOT_FOUND)]);
    let bytes = vec![9; 90_000];
    let artifact = bench.kubeadm(&bytes);
    assert!(matches!(bench.fetch(&artifact).await, Err(Error::NotFound { .. })));
    assert_eq!(fs::metadata(bench.part()).unwrap().len(), 30_000);
    bench.server.put(KUBEADM, &bytes);
    let files = bench.fetch(&artifact).await.unwrap();
    assert_eq!(fs::read(&files[0].path).unwrap(), bytes);
    assert_eq!(bench.ranges().last(), Some(&Some("bytes=30000-".to_owned())));
}

#[tokio::test]
async fn a_wrong_sum_is_an_error_after_one_more_try_and_leaves_nothing() {
    let bench = Bench::plain().await;
    bench.server.put(KUBEADM, b"something else");
    let artifact = bench.kubeadm(b"program");
    let error = bench.fetch(&artifact).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        format!(
            "{}{KUBEADM} has the wrong SHA-256: expected {}, got {}",
            bench.server.base(),
            sum_of(b"program"),
            sum_of(b"something else")
        )
    );
    assert_eq!(bench.ranges(), [None, None]);
    assert!(bench.files().is_empty(), "{:?}", bench.files());
    assert_eq!(bench.store.cached(&artifact).await, None);
}

#[tokio::test]
async fn cancelling_keeps_what_has_come() {
    let mut bench = Bench::plain().await;
    let bytes = program(4_000_000);
    bench.server.put(KUBEADM, &bytes);
    bench.server.faults([Fault::StopAfter(2_000_000)]);
    let artifact = bench.kubeadm(&bytes);
    let cancel = CancellationToken::new();
    let watch = async {
        while let Some(news) = bench.news.recv().await {
            if matches!(news.state, ProgressState::Advanced { done } if done > 1_000_000) {
                return cancel.cancel();
            }
        }
    };
    let (result, ()) = tokio::join!(bench.store.fetch(&artifact, &bench.progress, &cancel), watch);
    assert!(matches!(result, Err(Error::Cancelled)));
    let kept = fs::metadata(bench.part()).unwrap().len();
    assert!(kept >= 500_000, "{kept}");
    assert_eq!(bench.store.cached(&artifact).await, None);

    let files = bench.fetch(&artifact).await.unwrap();
    assert_eq!(fs::read(&files[0].path).unwrap(), bytes);
    assert!(bench.ranges()[1].is_some());
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

    // Same size and same modification time, as somebody would do who hides it.
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
async fn a_version_without_a_known_sum_is_verified_by_its_published_one() {
    let bench = Bench::new(Server::tls().await);
    bench.server.put(KUBEADM, b"program");
    let sum = format!("{KUBEADM}.sha256");
    let artifact = bench.catalogue().resolve(Component::Kubeadm, "1.99.0", Arch::Amd64).unwrap();
    assert!(matches!(artifact.checksum, Checksum::Published(_)));

    bench.server.put(&sum, b"<html>not here</html>");
    assert!(matches!(bench.fetch(&artifact).await, Err(Error::NotASum { .. })));
    bench.server.put(&sum, sum_of(b"other").as_bytes());
    assert!(matches!(bench.fetch(&artifact).await, Err(Error::WrongSum { .. })));
    bench.server.put(&sum, format!("{}  kubeadm\n", sum_of(b"program")).as_bytes());
    let files = bench.fetch(&artifact).await.unwrap();
    assert_eq!(files[0].sha256, sum_of(b"program"));

    drop(bench.server);
    assert_eq!(bench.store.cached(&artifact).await.as_ref(), Some(&files));
    fs::write(&files[0].path, b"changed").unwrap();
    assert_eq!(bench.store.cached(&artifact).await, None);
}

#[tokio::test]
async fn an_unknown_certificate_is_refused_at_once_with_the_way_out() {
    let bench = Bench::new(Server::tls().await);
    bench.server.put(KUBEADM, b"program");
    let artifact = bench.kubeadm(b"program");
    let strict = store(bench.dir.path(), "");
    let error = strict.fetch(&artifact, &bench.progress, &CancellationToken::new()).await.unwrap_err();
    assert!(error.to_string().contains("UnknownIssuer"), "{error}");
    assert!(error.hint().unwrap().contains("CA file"));
    assert!(bench.news.is_empty(), "it was tried again");
    let errors = strict.check_reachable(&[artifact.clone(), artifact]).await.unwrap_err();
    assert!(matches!(&errors[..], [Error::Unreachable { files, .. }] if files.len() == 2), "{errors:?}");
}

#[tokio::test]
async fn a_redirect_from_tls_to_plain_http_is_refused() {
    let plain = Server::plain().await;
    plain.put(KUBEADM, b"program");
    let bench = Bench::new(Server::tls().await);
    bench.server.put(KUBEADM, b"program");
    bench.server.faults([Fault::Redirect(format!("{}{KUBEADM}", plain.base()))]);
    let error = bench.fetch(&bench.kubeadm(b"program")).await.unwrap_err().to_string();
    assert!(error.ends_with("it redirects from https to http"), "{error}");
    assert!(plain.requests().is_empty());
}

#[tokio::test]
async fn all_that_cannot_be_downloaded_is_known_beforehand() {
    let bench = Bench::plain().await;
    bench.server.put(KUBEADM, &program(5_000));
    bench.server.put(ETCD, &etcd_archive());
    let kubeadm = bench.kubeadm(&program(5_000));
    let etcd = bench.artifact(Component::Etcd, "3.99.0", &etcd_archive());
    let absent = ["9.9.9", "9.9.8"].map(|version| bench.artifact(Component::Runc, version, b""));
    let [runc, old_runc] = &absent;

    let all = [kubeadm.clone(), runc.clone(), etcd.clone(), old_runc.clone()];
    let errors = bench.store.check_reachable(&all).await.unwrap_err();
    let told: Vec<_> = errors.iter().map(ToString::to_string).collect();
    let expected = [runc, old_runc].map(|runc| format!("{} does not exist (404)", runc.address));
    assert_eq!(told, expected);

    let size = 5_000 + etcd_archive().len() as u64;
    assert_eq!(bench.store.check_reachable(&[kubeadm.clone(), etcd.clone()]).await.unwrap(), size);
    assert!(bench.ranges().is_empty(), "only HEAD is asked");
    bench.fetch(&kubeadm).await.unwrap();
    assert_eq!(bench.store.check_reachable(&[kubeadm.clone(), etcd.clone()]).await.unwrap(), size - 5_000);

    for code in [StatusCode::METHOD_NOT_ALLOWED, StatusCode::NOT_IMPLEMENTED, StatusCode::FORBIDDEN] {
        bench.server.refuse_head(code);
        let asked = bench.ranges().len();
        assert_eq!(bench.store.check_reachable(std::slice::from_ref(&etcd)).await.unwrap(), 0, "{code}");
        assert_eq!(bench.ranges()[asked..], [Some("bytes=0-0".to_owned())], "{code}");
    }
}

#[tokio::test]
async fn a_server_that_is_down_is_told_once_for_all_its_files() {
    let bench = Bench::plain().await;
    let artifacts = [bench.kubeadm(b"x"), bench.artifact(Component::Etcd, "3.99.0", b"x")];
    let Bench { server, store, progress, dir: _dir, .. } = bench;
    let address = server.address;
    drop(server);
    // The port closes when the server's task is gone.
    tokio::time::sleep(Duration::from_millis(50)).await;
    let errors = store.check_reachable(&artifacts).await.unwrap_err();
    let [error] = &errors[..] else { panic!("{errors:?}") };
    assert_eq!(
        error.to_string(),
        format!(
            "cannot reach {address}: Connection refused (os error 111); \
             kubeadm v1.99.0 for amd64, etcd v3.99.0 for amd64 cannot be downloaded"
        )
    );
    let error = store.fetch(&artifacts[0], &progress, &CancellationToken::new()).await.unwrap_err();
    assert!(error.to_string().contains("Connection refused"), "{error}");
    assert!(error.hint().unwrap().contains("HTTPS_PROXY"));
}

#[tokio::test]
async fn a_mirrors_password_is_sent_and_never_shown() {
    let bench = Bench::plain().await;
    let base = bench.server.base().replace("http://", "http://me:sentinel@");
    let own = format!("runc: {{amd64: {{9.9.9: {}}}}}", sum_of(b""));
    let catalogue = Catalogue::builtin().with_user("own.yaml", &own).unwrap().with_mirror(&base).unwrap();
    let artifact = catalogue.resolve(Component::Runc, "9.9.9", Arch::Amd64).unwrap();
    let error = bench.fetch(&artifact).await.unwrap_err();
    let errors = bench.store.check_reachable(std::slice::from_ref(&artifact)).await.unwrap_err();
    let shown = format!("{error} {error:?} {errors:?} {artifact:?} {catalogue:?}");
    assert!(!shown.contains("sentinel") && !shown.contains("me:"), "{shown}");
    assert_eq!(bench.server.requests()[0].authorization.as_deref(), Some("Basic bWU6c2VudGluZWw="));
}

#[test]
fn a_ca_file_that_is_none_is_refused_before_anything_is_downloaded() {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("ca.pem");
    for (content, reason) in
        [(None, "No such file"), (Some("no certificate"), "it holds no certificate in PEM form")]
    {
        if let Some(content) = content {
            fs::write(&path, content).unwrap();
        }
        let settings = StoreSettings { ca_file: Some(path.clone()), ..StoreSettings::new(dir.path()) };
        let error = Store::new(settings).unwrap_err().to_string();
        assert!(error.contains("ca.pem") && error.contains(reason), "{error}");
    }
}

#[tokio::test]
async fn a_directory_that_cannot_be_written_is_named() {
    let bench = Bench::plain().await;
    // A file where a directory is needed stops even root.
    fs::write(bench.dir.path().join("kubeadm"), b"").unwrap();
    let error = bench.fetch(&bench.kubeadm(b"x")).await.unwrap_err().to_string();
    assert!(error.contains("cannot make") && error.contains("kubeadm/v1.99.0/amd64"), "{error}");
}
