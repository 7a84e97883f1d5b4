//! Exports of a Manifest to a bundle, and imports of the bundle into another store.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use axum::http::{Method, StatusCode};
use kk_config::{Arch, Manifest, load_manifest};
use tempfile::TempDir;

use super::super::*;
use super::registry::{self, Pushed};
use crate::store::tests::server::{Fault, Server};
use crate::{Catalogue, Component, Store, StoreSettings};

const KUBEADM: &str = "/dl.k8s.io/release/v1.36.99/bin/linux/amd64/kubeadm";
const KUBELET: &str = "/dl.k8s.io/release/v1.36.99/bin/linux/amd64/kubelet";
const KUBECTL: &str = "/dl.k8s.io/release/v1.36.99/bin/linux/amd64/kubectl";

pub(super) struct Site {
    pub(super) server: Server,
    pub(super) pushed: Pushed,
    dir: TempDir,
}

impl Site {
    pub(super) async fn new() -> Self {
        let server = Server::plain().await;
        for path in [KUBEADM, KUBELET, KUBECTL] {
            server.put(path, path.as_bytes());
        }
        let pushed = registry::push(&server);
        Self { server, pushed, dir: tempfile::tempdir().unwrap() }
    }

    pub(super) fn catalogue(&self) -> Catalogue {
        let sum = |path: &str| kk_util::sha256(path.as_bytes());
        let entry = |name: &str, path| format!("{name}: {{amd64: {{1.36.99: {}}}}}\n", sum(path));
        let text = [entry("kubeadm", KUBEADM), entry("kubelet", KUBELET), entry("kubectl", KUBECTL)].concat();
        Catalogue::builtin().with_user("test", &text).unwrap().with_mirror(&self.server.base()).unwrap()
    }

    pub(super) fn manifest(&self, arches: &str, image: &str) -> Manifest {
        let host = self.server.address;
        let text = format!(
            "apiVersion: kubekey.kubesphere.io/v1alpha2\nkind: Manifest\nmetadata: {{name: test}}\nspec:\n  arches: [{arches}]\n  \
             kubernetesDistributions: [{{version: v1.36.99}}]\n  images: [\"{host}/{image}\"]\n  \
             registry: {{auths: {{\"{host}\": {{plainHTTP: true}}}}}}\n"
        );
        let mut manifest = load_manifest("test", &text).unwrap().0;
        // The default runc is not on this server.
        manifest.components.insert("runc", std::collections::BTreeSet::new());
        manifest
    }

    pub(super) fn store(&self, name: &str, offline: bool) -> Arc<Store> {
        let mut settings = StoreSettings::new(self.dir.path().join(name));
        settings.offline = offline;
        Arc::new(Store::new(settings).unwrap())
    }

    pub(super) fn file(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub(super) async fn export(
        &self,
        manifest: &Manifest,
        store: &str,
        file: &str,
    ) -> Result<Exported, String> {
        self.export_with(manifest, store, file, None).await
    }

    /// With a base: exports only the content that the base lacks.
    pub(super) async fn export_with(
        &self,
        manifest: &Manifest,
        store: &str,
        file: &str,
        base: Option<&BundleIndex>,
    ) -> Result<Exported, String> {
        let (catalogue, store) = (self.catalogue(), self.store(store, false));
        let exported = export(manifest, &catalogue, &store, &self.file(file), base, &|_| {}).await;
        exported.map_err(|errors| errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))
    }

    /// Requests for content, as opposed to documents.
    fn fetched(&self) -> usize {
        let is_content = |path: &str| path.contains("/blobs/") || path.contains("dl.k8s.io");
        let requests = self.server.requests().into_iter();
        requests.filter(|seen| seen.method == Method::GET && is_content(&seen.path)).count()
    }
}

fn blob_of(bundle: &BundleIndex, path: &str) -> bool {
    let digits = path.rsplit(':').next().unwrap();
    bundle.files.iter().any(|file| file.path.ends_with(digits))
}

#[tokio::test]
async fn what_is_exported_is_there_after_an_import_without_network() {
    let site = Site::new().await;
    let exported = site.export(&site.manifest("amd64", "team/app:v1"), "store", "a.tar.zst").await.unwrap();
    let [amd64, arm64, attestation] = [0, 1, 2].map(|i| blob_of(&exported.index, &site.pushed.layers[i].0));
    assert_eq!((amd64, arm64, attestation), (true, false, false), "only what hosts of amd64 need");
    let bundle = site.file("a.tar.zst");
    assert_eq!(verify(&bundle).unwrap().index, exported.index);
    let index = index(&bundle).unwrap();
    assert_eq!(index, exported.index);

    let (before, store) = (site.server.requests().len(), site.store("other", true));
    let catalogue = Catalogue::builtin().with_bundle(&bundle, &index).unwrap();
    let wanted = catalogue.resolve(Component::Kubelet, "1.36.99", Arch::Amd64).unwrap();
    assert!(store.cached(&wanted).await.is_none());
    assert!(import(&bundle, &index, &catalogue, &store).await.unwrap() > 100_000);
    let files = store.cached(&wanted).await.unwrap();
    assert_eq!(std::fs::read(&files[0].path).unwrap(), KUBELET.as_bytes());
    for part in &index.images[0].platforms[0].blobs {
        let content = std::fs::read(store.blob(part)).unwrap();
        assert_eq!(format!("sha256:{}", kk_util::sha256(content)), *part);
    }
    assert_eq!(import(&bundle, &index, &catalogue, &store).await.unwrap(), 0, "nothing is unpacked twice");
    assert_eq!(site.server.requests().len(), before, "nobody was asked");
    let missing = catalogue.resolve(Component::Kubelet, "1.36.0", Arch::Amd64).unwrap();
    assert!(store.check_reachable(&[wanted, missing]).await.unwrap_err()[0].to_string().contains("1.36.0"));
}

#[tokio::test]
async fn the_same_content_gives_the_same_bytes_however_it_came() {
    let site = Site::new().await;
    let manifest = site.manifest("amd64, arm64", "team/app:v1").without_programs();
    for (store, file) in
        [("one", "1.tar.zst"), ("two", "2.tar.zst"), ("one", "3.tar.gz"), ("two", "4.tar.gz")]
    {
        site.export(&manifest, store, file).await.unwrap();
    }
    let read = |file: &str| std::fs::read(site.file(file)).unwrap();
    assert!(read("1.tar.zst") == read("2.tar.zst") && read("3.tar.gz") == read("4.tar.gz"));
    assert_eq!(verify(&site.file("3.tar.gz")).unwrap().index, verify(&site.file("1.tar.zst")).unwrap().index);
}

#[tokio::test]
async fn a_second_export_fetches_only_what_is_missing() {
    let site = Site::new().await;
    let manifest = site.manifest("amd64", "team/app:v1");
    site.export(&manifest, "store", "a.tar.zst").await.unwrap();
    let before = site.fetched();
    assert_eq!(site.export(&manifest, "store", "b.tar.zst").await.unwrap().fetched, 0);
    assert_eq!(site.fetched(), before);
    // The state after a kill: one blob is incomplete.
    let (path, layer) = &site.pushed.layers[0];
    let blob = site.store("store", false).blob(path.rsplit('/').next().unwrap());
    std::fs::remove_file(&blob).unwrap();
    let part = blob.with_file_name(format!(".{}.part", blob.file_name().unwrap().to_str().unwrap()));
    std::fs::write(part, &layer[..60_000]).unwrap();
    site.export(&manifest, "store", "c.tar.zst").await.unwrap();
    let last = site.server.requests().into_iter().rfind(|seen| seen.path == *path).unwrap();
    assert_eq!(last.range.as_deref(), Some("bytes=60000-"));
    assert_eq!(
        std::fs::read(site.file("a.tar.zst")).unwrap(),
        std::fs::read(site.file("c.tar.zst")).unwrap()
    );
}

#[tokio::test]
async fn a_blob_that_is_cut_goes_on_and_a_busy_registry_is_waited_for() {
    let site = Site::new().await;
    let manifest = site.manifest("amd64", "team/app:v1").without_programs();
    // The documents are first: /v2/, the index, the manifest.
    site.export(&manifest, "store", "a.tar.zst").await.unwrap();
    let (path, _) = &site.pushed.layers[0];
    let blob = site.store("store", false).blob(path.rsplit('/').next().unwrap());
    std::fs::remove_file(blob).unwrap();
    let notes = Mutex::new(Vec::new());
    let news = |news| {
        if let ExportNews::Note { message } = news {
            notes.lock().unwrap().push(message);
        }
    };
    site.server.faults_at(
        path,
        [
            Fault::CutAfter(70_000),
            Fault::Status(StatusCode::TOO_MANY_REQUESTS),
            Fault::Status(StatusCode::BAD_GATEWAY),
        ],
    );
    let store = site.store("store", false);
    export(&manifest, &site.catalogue(), &store, &site.file("b.tar.zst"), None, &news).await.unwrap();
    let notes = notes.into_inner().unwrap();
    assert_eq!(notes.len(), 3, "{notes:?}");
    assert!(notes[1].contains("429") && notes[2].contains("502"), "{notes:?}");
    assert!(verify(&site.file("b.tar.zst")).is_ok());
}

#[tokio::test]
async fn a_token_service_that_fails_for_a_while_is_no_wrong_password() {
    let site = Site::new().await;
    let manifest = site.manifest("amd64", "team/app:v1").without_programs();
    let challenge = || Fault::Challenge(format!("Bearer realm=\"{}/token\"", site.server.base()));
    let bad = || Fault::Status(StatusCode::BAD_GATEWAY);
    site.server.put("/v2/", b"{}");
    site.server.put("/token", br#"{"token":"sesame"}"#);
    site.server.faults_at("/v2/", (0..3).map(|_| challenge()));
    site.server.faults_at("/token", [bad(), bad()]);
    site.server.faults_at("/v2/team/app/manifests/v1", [challenge()]);
    site.export(&manifest, "store", "a.tar.zst").await.unwrap();

    // With a token, a second refusal is final.
    let site = Site::new().await;
    let challenge = || Fault::Challenge(format!("Bearer realm=\"{}/token\"", site.server.base()));
    site.server.put("/v2/", b"{}");
    site.server.put("/token", br#"{"token":"sesame"}"#);
    site.server.faults_at("/v2/", (0..9).map(|_| challenge()));
    site.server.faults_at("/v2/team/app/manifests/v1", (0..9).map(|_| challenge()));
    let manifest = site.manifest("amd64", "team/app:v1").without_programs();
    let error = site.export(&manifest, "store", "a.tar.zst").await.unwrap_err();
    assert!(error.contains("it requires a user name and password (401)"), "{error}");
    let asked = site.server.requests().into_iter().filter(|seen| seen.path.ends_with("/manifests/v1"));
    assert_eq!(asked.count(), 2);
}

#[tokio::test]
async fn an_image_by_its_digest_keeps_all_that_its_index_names() {
    let site = Site::new().await;
    let digest = site.pushed.index_digest.clone();
    let manifest = site.manifest("amd64", &format!("team/app@{digest}")).without_programs();
    let exported = site.export(&manifest, "store", "a.tar.zst").await.unwrap();
    assert_eq!(exported.index.images[0].digest, digest);
    assert!((0..3).all(|i| blob_of(&exported.index, &site.pushed.layers[i].0)));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn images_with_the_same_content_do_not_disturb_each_other() {
    let site = Site::new().await;
    for attempt in 0..5 {
        let mut manifest = site.manifest("amd64", "team/app:v1").without_programs();
        for number in 0..8 {
            registry::push_as(&site.server, &format!("team/app{number}"));
            for tag in ["single", "v1"] {
                let name = format!("{}/team/app{number}:{tag}", site.server.address);
                manifest.images.insert(name.parse().unwrap());
            }
        }
        site.export(&manifest, &format!("store-{attempt}"), "a.tar.zst").await.unwrap();
        assert!(verify(&site.file("a.tar.zst")).is_ok());
    }
}

#[tokio::test]
async fn everything_that_cannot_be_had_is_told_at_once_and_leaves_no_bundle() {
    let site = Site::new().await;
    let mut manifest = site.manifest("amd64", "team/app:v1");
    let host = site.server.address;
    manifest.images.insert(format!("{host}/team/none:v1").parse().unwrap());
    manifest.kubernetes.insert("v1.36.98".parse().unwrap());
    let unknown = site.export(&manifest, "store", "a.tar.zst").await.unwrap_err();
    assert!(unknown.lines().count() == 3 && unknown.contains("kubeadm v1.36.98"), "{unknown}");
    manifest.kubernetes.pop_last();
    manifest.arches.insert(Arch::Arm64);
    manifest.kubernetes.clear();
    let missing = site.export(&manifest, "store", "a.tar.zst").await.unwrap_err();
    assert!(missing.contains("team/none:v1") && missing.contains("404"), "{missing}");
    assert!(!site.file("a.tar.zst").exists());
    assert!(leftovers(site.dir.path()).is_empty(), "{:?}", leftovers(site.dir.path()));
}

#[tokio::test]
async fn a_blob_that_is_damaged_on_the_disk_is_found_and_fetched_again() {
    let site = Site::new().await;
    let manifest = site.manifest("amd64", "team/app:v1").without_programs();
    site.export(&manifest, "store", "a.tar.zst").await.unwrap();
    let (path, layer) = &site.pushed.layers[0];
    let blob = site.store("store", false).blob(path.rsplit('/').next().unwrap());
    let mut damaged = layer.clone();
    damaged[5] ^= 1;
    std::fs::write(blob, damaged).unwrap();
    let error = site.export(&manifest, "store", "b.tar.zst").await.unwrap_err();
    assert!(error.contains("is damaged") && !site.file("b.tar.zst").exists(), "{error}");
    site.export(&manifest, "store", "b.tar.zst").await.unwrap();
    assert!(verify(&site.file("b.tar.zst")).is_ok());
}

/// Files of an incomplete bundle.
fn leftovers(dir: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
    entries.filter(|path| path.extension().is_some_and(|extension| extension == "part")).collect()
}

pub(super) trait WithoutPrograms {
    fn without_programs(self) -> Self;
}

impl WithoutPrograms for Manifest {
    fn without_programs(mut self) -> Self {
        self.kubernetes.clear();
        self
    }
}
