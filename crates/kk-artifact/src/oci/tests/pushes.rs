//! What a push sends, and what it leaves alone.

use std::fs;
use std::path::Path;
use std::sync::Mutex;

use axum::http::StatusCode;
use kk_config::v1alpha2::RegistryType;
use kk_config::{Registry, RegistryAuth, Secret, Spec};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::super::{Layout, PushImage, PushNews, Pushed, push};
use super::hub::Hub;

/// Requests that send content or documents.
const SENDS: [&str; 3] = ["POST", "PUT", "PATCH"];

/// Two images with a layer in common; the first is there for two architectures.
struct Site {
    hub: Hub,
    dir: TempDir,
}

struct Writer<'a>(&'a Path);

impl Writer<'_> {
    fn blob(&self, bytes: &[u8]) -> Value {
        let sum = kk_util::sha256(bytes);
        fs::write(self.0.join("blobs/sha256").join(&sum), bytes).unwrap();
        json!({"digest": format!("sha256:{sum}"), "size": bytes.len()})
    }

    fn described(&self, bytes: &[u8], media_type: &str) -> Value {
        let mut blob = self.blob(bytes);
        blob["mediaType"] = json!(format!("application/vnd.oci.image.{media_type}"));
        blob
    }

    fn manifest(&self, arch: &str, layers: &[&[u8]]) -> Value {
        let rootfs = json!({"type": "layers", "diff_ids": []});
        let config = json!({"architecture": arch, "os": "linux", "rootfs": rootfs}).to_string();
        let layers: Vec<_> = layers.iter().map(|bytes| self.described(bytes, "layer.v1.tar")).collect();
        let manifest = json!({"schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json",
            "config": self.described(config.as_bytes(), "config.v1+json"), "layers": layers});
        let mut entry = self.described(manifest.to_string().as_bytes(), "manifest.v1+json");
        entry["platform"] = json!({"architecture": arch, "os": "linux"});
        entry
    }
}

impl Site {
    async fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir_all(dir.path().join("blobs/sha256")).unwrap();
        let writer = Writer(dir.path());
        let (common, amd64) = (vec![7; 900_000], b"amd64".repeat(1000));
        let manifests = [writer.manifest("amd64", &[&common, &amd64]), writer.manifest("arm64", &[b"arm64"])];
        let index = json!({"schemaVersion": 2, "mediaType": "application/vnd.oci.image.index.v1+json", "manifests": manifests});
        // Not as a serializer would write it: the bytes must stay.
        let index = format!("{index}\n  ");
        let mut both =
            [writer.described(index.as_bytes(), "index.v1+json"), writer.manifest("amd64", &[&common])];
        for (entry, name) in both.iter_mut().zip(["docker.io/team/app:v1", "quay.io/other/tool:v2"]) {
            entry["annotations"] = json!({"org.opencontainers.image.ref.name": name});
        }
        fs::write(dir.path().join("index.json"), json!({"schemaVersion": 2, "manifests": both}).to_string())
            .unwrap();
        Self { hub: Hub::new().await, dir }
    }

    fn registry(&self, password: Option<&str>) -> Registry {
        let mut spec =
            Spec::all_in_one("a", [10, 0, 0, 1].into(), kk_config::KubeVersion::default()).unwrap();
        let password = password.map(|word| Secret::new(word.to_owned()));
        let username = password.as_ref().map(|_| "u".to_owned());
        let auth = RegistryAuth { plain_http: true, username, password, ..RegistryAuth::default() };
        spec.registry.auths.insert(self.hub.address.clone(), auth);
        spec.registry.private_registry = Some(self.hub.address.clone());
        spec.registry
    }

    fn images(&self, registry: &Registry) -> Vec<PushImage> {
        let images = Layout::open(self.dir.path()).images().unwrap().into_iter();
        let named = |image: super::super::LayoutImage| {
            let target = registry.private_name(&image.name).unwrap();
            PushImage { image, target }
        };
        images.map(named).collect()
    }

    async fn push_as(&self, registry: &Registry, news: &(dyn Fn(PushNews) + Sync)) -> Result<Pushed, String> {
        let pushed = push(&Layout::open(self.dir.path()), &self.images(registry), registry, news).await;
        pushed.map_err(|errors| errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))
    }

    async fn push(&self) -> Result<Pushed, String> {
        self.push_as(&self.registry(None), &|_| {}).await
    }

    /// What a name stands for in the registry, and whether its bytes are those of the layout.
    fn is_there(&self, repository: &str, tag: &str, digest: &str) -> bool {
        let (_, text) =
            self.hub.held(|held| held.manifests[&(repository.to_owned(), tag.to_owned())].clone());
        let file = self.dir.path().join("blobs").join(digest.replace(':', "/"));
        fs::read(file).unwrap() == text
    }

    /// Everything is there with its digests, documents and content.
    fn all_is_there(&self) -> bool {
        let images = Layout::open(self.dir.path()).images().unwrap();
        self.is_there("team/app", "v1", &images[0].digest)
            && self.is_there("other/tool", "v2", &images[1].digest)
    }
}

#[tokio::test]
async fn what_is_pushed_keeps_its_digests_and_a_second_push_sends_nothing() {
    let site = Site::new().await;
    let seen = Mutex::new(Vec::new());
    let news = |news| seen.lock().unwrap().push(news);
    let pushed = site.push_as(&site.registry(None), &news).await.unwrap();
    assert_eq!((pushed.images, pushed.there), (2, 0));
    assert!(site.all_is_there());
    // The common layer and the configuration were sent once, and mounted where they are needed again.
    assert!(pushed.sent > 900_000 && pushed.sent < 1_000_000, "{pushed:?}");
    assert_eq!(pushed.mounted, 2);
    let seen = seen.into_inner().unwrap();
    let PushNews::Missing { images: 2, bytes } = seen[0] else { panic!("{seen:?}") };
    let done = |news: &PushNews| if let PushNews::Done { bytes } = news { *bytes } else { 0 };
    assert_eq!(seen.iter().map(done).max(), Some(bytes), "all of it is counted");

    site.hub.asked(&[]);
    let again = site.push().await.unwrap();
    assert_eq!(again, Pushed { there: 2, ..Pushed::default() });
    assert_eq!(site.hub.asked(&SENDS), 0);
}

#[tokio::test]
async fn a_harbor_gets_the_projects_that_it_lacks_and_a_plain_registry_is_not_asked() {
    let site = Site::new().await;
    site.hub.held(|held| held.projects = Some(["team".to_owned()].into()));
    let mut registry = site.registry(None);
    assert!(site.push_as(&registry, &|_| {}).await.is_err(), "a project is missing");
    registry.kind = Some(RegistryType::Harbor);
    let notes = Mutex::new(Vec::new());
    let news = |news| {
        if let PushNews::Note { message } = news {
            notes.lock().unwrap().push(message);
        }
    };
    site.push_as(&registry, &news).await.unwrap();
    assert!(site.all_is_there());
    assert_eq!(notes.into_inner().unwrap(), ["made project other"]);
    site.push_as(&registry, &|_| {}).await.unwrap();
    assert_eq!(site.hub.asked(&["POST /api"]), 1, "a second push makes none");
}

#[tokio::test]
async fn projects_that_cannot_be_made_are_all_named_before_anything_is_sent() {
    for (code, words) in [
        (StatusCode::UNAUTHORIZED, "it refuses the user name or the password (401)"),
        (StatusCode::FORBIDDEN, "the user may not make it (403)"),
        (StatusCode::INTERNAL_SERVER_ERROR, "it answers 500"),
    ] {
        let site = Site::new().await;
        site.hub.held(|held| held.projects = Some([].into()));
        site.hub.faults("POST /api", [code, code]);
        let registry = Registry { kind: Some(RegistryType::Harbor), ..site.registry(Some("p")) };
        let said = site.push_as(&registry, &|_| {}).await.unwrap_err();
        for project in ["team", "other"] {
            assert!(said.contains(&format!("project {project}: {words}")), "{said}");
        }
        assert_eq!(site.hub.asked(&["PUT", "PATCH", "POST /v2"]), 0);
    }
}

#[tokio::test]
async fn content_of_two_names_in_one_repository_is_counted_once() {
    let site = Site::new().await;
    let registry = site.registry(None);
    let mut images = site.images(&registry);
    images[1] = images[0].clone();
    images[1].target.tag = Some("latest".into());
    let seen = Mutex::new((0, 0));
    let news = |news| match news {
        PushNews::Missing { bytes, .. } => seen.lock().unwrap().0 = bytes,
        PushNews::Done { bytes } => seen.lock().unwrap().1 = bytes,
        PushNews::Note { .. } => {}
    };
    let pushed = push(&Layout::open(site.dir.path()), &images, &registry, &news).await.unwrap();
    let (missing, done) = seen.into_inner().unwrap();
    assert_eq!((pushed.images, pushed.sent, done), (2, missing, missing));
}

#[tokio::test]
async fn what_the_registry_has_is_not_sent_again() {
    let site = Site::new().await;
    site.push().await.unwrap();
    site.hub.held(|held| held.manifests.retain(|(repository, _), _| repository == "team/app"));
    let pushed = site.push().await.unwrap();
    assert_eq!(
        (pushed.images, pushed.there, pushed.sent, pushed.mounted),
        (1, 1, 0, 0),
        "its blobs are there"
    );
    site.hub.held(|held| {
        held.manifests.retain(|(repository, _), _| repository == "team/app");
        held.blobs.retain(|(repository, _)| repository == "team/app");
    });
    let pushed = site.push().await.unwrap();
    assert_eq!((pushed.images, pushed.sent, pushed.mounted), (1, 0, 2), "another repository has them");
    assert!(site.all_is_there());
}

#[tokio::test]
async fn a_name_that_stands_for_another_image_is_pushed_again() {
    let site = Site::new().await;
    site.push().await.unwrap();
    site.hub.held(|held| {
        let other = held.manifests[&("other/tool".to_owned(), "v2".to_owned())].clone();
        held.manifests.insert(("team/app".to_owned(), "v1".to_owned()), other);
    });
    let pushed = site.push().await.unwrap();
    assert_eq!((pushed.images, pushed.there), (1, 1));
    assert!(site.all_is_there());
}

#[tokio::test]
async fn what_passes_is_tried_again_and_what_stays_is_told_and_the_next_push_goes_on() {
    let site = Site::new().await;
    let faults = [StatusCode::TOO_MANY_REQUESTS];
    site.hub.faults("PUT /v2/team/app/blobs", faults);
    site.hub.faults("HEAD /v2/team/app/blobs", [StatusCode::SERVICE_UNAVAILABLE]);
    site.hub.faults("PUT /v2/other/tool/manifests", [StatusCode::INTERNAL_SERVER_ERROR]);
    site.hub.faults("PUT /v2/team/app/manifests", [StatusCode::FORBIDDEN]);
    let error = site.push().await.unwrap_err();
    assert!(error.contains("team/app:v1: it answers 403") && !error.contains("other/tool"), "{error}");
    let pushed = site.push().await.unwrap();
    assert_eq!((pushed.images, pushed.there, pushed.sent), (1, 1, 0));
    assert!(site.all_is_there());
}

#[tokio::test]
async fn a_registry_that_wants_a_password_gets_it_and_a_wrong_one_is_told() {
    let site = Site::new().await;
    // u:right
    site.hub.login("Basic dTpyaWdodA==");
    for (password, said) in [
        (None, "it requires a user name and password (401)"),
        (Some("wrong"), "it refuses the user name or the password (401)"),
    ] {
        let error = site.push_as(&site.registry(password), &|_| {}).await.unwrap_err();
        assert!(error.contains(said) && !error.contains("wrong"), "{error}");
        assert_eq!(error.lines().count(), 1, "what is wrong with the registry is told once: {error}");
    }
    assert_eq!(site.hub.asked(&SENDS), 0);
    site.push_as(&site.registry(Some("right")), &|_| {}).await.unwrap();
    assert!(site.all_is_there());
}

#[tokio::test]
async fn content_that_is_missing_or_damaged_is_told_and_gets_no_name() {
    let site = Site::new().await;
    let layer = site.dir.path().join("blobs/sha256").join(kk_util::sha256(vec![7; 900_000]));
    let whole = fs::read(&layer).unwrap();
    let mut damaged = whole.clone();
    damaged[1000] ^= 1;
    fs::write(&layer, &damaged).unwrap();
    let error = site.push().await.unwrap_err();
    assert!(error.contains("it answers 400: refused: DIGEST_INVALID"), "{error}");
    assert!(site.hub.held(|held| held.manifests.is_empty()));
    fs::write(&layer, &whole[1..]).unwrap();
    site.hub.asked(&[]);
    let error = site.push().await.unwrap_err();
    assert!(error.contains("is missing, or not whole"), "{error}");
    assert_eq!(site.hub.asked(&SENDS), 0);
    fs::write(&layer, &whole).unwrap();
    site.push().await.unwrap();
    assert!(site.all_is_there());
}

#[tokio::test]
async fn two_images_never_get_one_name() {
    let site = Site::new().await;
    let mut registry = site.registry(None);
    registry.namespace_override = Some("all".into());
    let mut images = site.images(&registry);
    assert_eq!(images[0].target.to_string(), format!("{}/all/app:v1", site.hub.address));
    images[1].target = images[0].target.clone();
    let errors = push(&Layout::open(site.dir.path()), &images, &registry, &|_| {}).await.unwrap_err();
    assert!(errors[0].to_string().contains("docker.io/team/app:v1 gets the same name"), "{errors:?}");
    assert_eq!(site.hub.asked(&[""]), 0);
}
