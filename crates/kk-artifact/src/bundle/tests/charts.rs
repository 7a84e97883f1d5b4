//! Bundles with charts and manifests from a helm repository, an OCI registry, a server and the local machine.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use kk_config::{ChartSource, Manifest, ManifestFile, ManifestSource, load_manifest};
use serde_json::json;

use super::super::*;
use super::compared::{Case, Parts, expect_refused};
use super::exports::{Site, WithoutPrograms as _};
use crate::charts::{Identity, identity};
use crate::store::tests::server::Fault;
use crate::{Catalogue, Obtained, obtain};

const APP: &str = "/charts/files/app-1.2.0.tgz";
const CRDS: &str = "/files/crds.yaml";

/// Creates the directory of a chart.
fn chart_directory(dir: &Path, name: &str, version: &str) {
    fs::create_dir_all(dir.join("templates")).unwrap();
    let text = format!("apiVersion: v2\nname: {name}\nversion: {version}\n");
    fs::write(dir.join("Chart.yaml"), text).unwrap();
    fs::write(dir.join("templates/map.yaml"), "kind: ConfigMap\n").unwrap();
}

/// A packed chart with a file of `more` bytes.
fn packed(name: &str, version: &str, more: usize) -> Vec<u8> {
    let mut tar = tar::Builder::new(flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::none()));
    let document = format!("apiVersion: v2\nname: {name}\nversion: {version}\n");
    for (path, content) in [("README.md", "x".repeat(more)), ("Chart.yaml", document)] {
        let mut header = tar::Header::new_gnu();
        header.set_size(content.len() as u64);
        header.set_mode(0o644);
        tar.append_data(&mut header, format!("{name}/{path}"), content.as_bytes()).unwrap();
    }
    tar.into_inner().unwrap().finish().unwrap()
}

/// Serves the content that the tests need.
fn serve(site: &Site) -> Vec<u8> {
    let (app, web) = (packed("app", "1.2.0", 200_000), packed("web", "2.0.0+1", 10));
    let index = format!(
        "apiVersion: v1\nentries:\n  app:\n  - {{version: 1.2.0, urls: [files/app-1.2.0.tgz], digest: {}}}\n  \
         - {{version: 1.1.0, urls: [files/none.tgz]}}\n",
        kk_util::sha256(&app)
    );
    let tags = json!({"name": "team/web", "tags": ["1.0.0", "2.0.0_1"]}).to_string();
    for (path, bytes) in [
        ("/charts/index.yaml", index.as_bytes()),
        (APP, &app[..]),
        (CRDS, b"kind: CustomResourceDefinition\n"),
        ("/files/latest.yaml", b"kind: Namespace\n"),
        ("/v2/team/web/tags/list", tags.as_bytes()),
    ] {
        site.server.put(path, bytes);
    }
    push(site, "team/web", "2.0.0_1", &web);
    app
}

/// Serves a packed chart like an OCI registry.
fn push(site: &Site, name: &str, tag: &str, packed: &[u8]) {
    let digest = |bytes: &[u8]| format!("sha256:{}", kk_util::sha256(bytes));
    let content = "application/vnd.cncf.helm.chart.content.v1.tar+gzip";
    let config = "application/vnd.cncf.helm.config.v1+json";
    let manifest = json!({
        "schemaVersion": 2,
        "mediaType": "application/vnd.oci.image.manifest.v1+json",
        "config": {"mediaType": config, "digest": digest(b"{}"), "size": 2},
        "layers": [{"mediaType": content, "digest": digest(packed), "size": packed.len()}],
    });
    site.server.put(&format!("/v2/{name}/manifests/{tag}"), manifest.to_string().as_bytes());
    site.server.put(&format!("/v2/{name}/blobs/{}", digest(packed)), packed);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_chart_that_several_places_have_is_one_file() {
    let site = Site::new().await;
    let app = serve(&site);
    let place = |number: u32| {
        push(&site, &format!("team{number}/app"), "1.2.0", &app);
        format!("  - {{name: \"oci://HOST/team{number}/app\", version: 1.2.0}}\n")
    };
    let places: String = (0..6).map(place).collect();
    let words = format!("  charts:\n  - {{name: app, repo: BASE/charts, version: 1.2.0}}\n{places}");
    let manifest = manifest(&site, &words);
    for attempt in 0..5 {
        let exported = site.export(&manifest, &format!("store-{attempt}"), "a.tar.zst").await.unwrap();
        assert_eq!(exported.index.charts.len(), 7);
        assert_eq!(exported.index.files.iter().filter(|file| file.path.starts_with("charts/")).count(), 1);
    }
    assert!(verify(&site.file("a.tar.zst")).is_ok());
}

/// A Manifest with these charts and manifests, given as text of its file.
fn manifest(site: &Site, words: &str) -> Manifest {
    let text = format!(
        "apiVersion: kubekey.kubesphere.io/v1alpha2\nkind: Manifest\nspec:\n  arches: [amd64]\n{words}"
    );
    let (base, host) = (site.server.base(), site.server.address.to_string());
    let dir = site.file("here").display().to_string();
    let text = text.replace("BASE", &base).replace("HOST", &host).replace("HERE", &dir);
    let mut manifest = site.manifest("amd64", "team/app:v1").without_programs();
    let wanted = load_manifest("test", &text).unwrap().0;
    (manifest.charts, manifest.manifests) = (wanted.charts, wanted.manifests);
    manifest
}

fn everything(site: &Site) -> Manifest {
    let here = site.file("here");
    chart_directory(&here.join("own"), "own", "0.1.0");
    fs::write(here.join("packed.tgz"), packed("other", "0.2.0", 1)).unwrap();
    fs::write(here.join("more.yaml"), "kind: Secret\n").unwrap();
    let sum = kk_util::sha256(b"kind: CustomResourceDefinition\n");
    manifest(
        site,
        &format!(
            "  charts:\n  - {{name: app, repo: BASE/charts, version: 1.2.0}}\n  - {{name: \"oci://HOST/team/web\", version: 2.0.0+1}}\n  \
             - {{path: HERE/own}}\n  - {{path: HERE/packed.tgz}}\n  manifests:\n  - {{url: BASE/files/crds.yaml, sha256: {sum}}}\n  \
             - {{url: BASE/files/latest.yaml, name: namespace.yaml}}\n  - {{path: HERE/more.yaml}}\n"
        ),
    )
}

#[tokio::test]
async fn charts_and_manifests_of_every_origin_are_there_after_an_import() {
    let site = Site::new().await;
    serve(&site);
    let manifest = everything(&site);
    let exported = site.export(&manifest, "store", "a.tar.zst").await.unwrap();
    let index = &exported.index;
    let charts: Vec<_> = index.charts.iter().map(|part| (&*part.path, &*part.name, &*part.version)).collect();
    assert_eq!(
        charts,
        [
            ("charts/app-1.2.0.tgz", "app", "1.2.0"),
            ("charts/web-2.0.0+1.tgz", "web", "2.0.0+1"),
            ("charts/own-0.1.0.tgz", "own", "0.1.0"),
            ("charts/other-0.2.0.tgz", "other", "0.2.0"),
        ]
    );
    let manifests: Vec<_> = index.manifests.iter().map(|part| &*part.path).collect();
    assert_eq!(manifests, ["manifests/crds.yaml", "manifests/more.yaml", "manifests/namespace.yaml"]);
    assert_eq!(index.charts[1].source, format!("oci://{}/team/web", site.server.address));
    let bundle = site.file("a.tar.zst");
    assert_eq!(verify(&bundle).unwrap().index, *index);

    let asked = site.server.requests().len();
    let again = site.export(&manifest, "store", "b.tar.zst").await.unwrap();
    assert_eq!(
        again.fetched,
        "kind: Namespace\n".len() as u64,
        "what has no sum comes again, and nothing else"
    );
    let asked: Vec<String> = site.server.requests().drain(asked..).map(|seen| seen.path).collect();
    assert!(!asked.iter().any(|path| path == APP || path == CRDS), "{asked:?}");
    assert!(fs::read(&bundle).unwrap() == fs::read(site.file("b.tar.zst")).unwrap());

    let store = site.store("elsewhere", true);
    let catalogue = Catalogue::builtin().with_bundle(&bundle, index).unwrap();
    assert!(import(&bundle, index, &catalogue, &store).await.unwrap() > 200_000);
    let read = |path: &str| {
        let file = index.files.iter().find(|file| file.path == path).unwrap();
        fs::read(store.blob(&file.sha256)).unwrap()
    };
    for part in &index.charts {
        let (name, version) = (part.name.clone(), part.version.clone());
        assert_eq!(identity(&read(&part.path)[..]), Ok(Identity { name, version }));
    }
    assert_eq!(read("manifests/namespace.yaml"), b"kind: Namespace\n");
    assert_eq!(import(&bundle, index, &catalogue, &store).await.unwrap(), 0, "nothing is unpacked twice");
    let sbom = Parts::of(&bundle).bytes("sbom.spdx.json").clone();
    let sbom = String::from_utf8(sbom).unwrap();
    for part in ["charts/app-1.2.0.tgz", "charts/own-0.1.0.tgz", "manifests/crds.yaml"] {
        assert!(sbom.contains(part), "{part}");
    }
}

#[tokio::test]
async fn a_bundle_has_no_token_of_a_url() {
    let site = Site::new().await;
    serve(&site);
    site.server.put("/files/own.yaml", b"kind: Secret\n");
    let wanted = manifest(&site, "  manifests: [{url: \"BASE/files/own.yaml?token=SENTINEL\"}]\n");
    let index = site.export(&wanted, "store", "a.tar.zst").await.unwrap().index;
    assert_eq!(index.manifests[0].source, format!("{}/files/own.yaml", site.server.base()));
    let mut parts = Parts::of(&site.file("a.tar.zst"));
    for text in [index.text(), parts.bytes("sbom.spdx.json").clone()] {
        assert!(!String::from_utf8(text).unwrap().contains("SENTINEL"));
    }
    let bundle = Bundle::with_index(&site.file("a.tar.zst"), index);
    let url = format!("{}/files/own.yaml?token=another", site.server.base());
    assert_eq!(
        bundle.manifest(&ManifestSource::Url { url, sha256: None }).unwrap().path,
        "manifests/own.yaml"
    );
}

#[tokio::test]
async fn all_that_cannot_be_had_is_told_at_once_and_before_anything_is_fetched() {
    let site = Site::new().await;
    serve(&site);
    let here = site.file("here");
    fs::create_dir_all(here.join("empty")).unwrap();
    chart_directory(&here.join("needs"), "needs", "1.0.0");
    let document = here.join("needs/Chart.yaml");
    let text = fs::read_to_string(&document).unwrap() + "dependencies: [{name: sub, version: 1.0.0}]\n";
    fs::write(document, text).unwrap();
    fs::write(here.join("text.tgz"), "no chart").unwrap();
    let manifest = manifest(
        &site,
        "  charts:\n  - {name: app, repo: BASE/charts, version: 1.3.0}\n  - {name: apps, repo: BASE/charts, version: 1.2.0}\n  \
         - {name: app, repo: BASE/charts, version: 1.1.0}\n  - {name: app, repo: BASE/nowhere, version: 1.2.0}\n  \
         - {name: app, repo: \"http://127.0.0.1:9\", version: 1.2.0}\n  - {name: \"oci://HOST/team/web\", version: 3.0.0}\n  \
         - {name: \"oci://HOST/team/app\", version: 1.0.0}\n  - {path: HERE/none}\n  - {path: HERE/empty}\n  - {path: HERE/needs}\n  \
         - {path: HERE/text.tgz}\n  manifests:\n  - {url: BASE/files/none.yaml}\n  - {path: HERE/missing.yaml}\n",
    );
    let said = site.export(&manifest, "store", "a.tar.zst").await.unwrap_err();
    for (part, reason) in [
        ("chart app 1.3.0 of", "does not have this version; it has 1.2.0, 1.1.0"),
        ("chart apps 1.2.0 of", "does not have this chart; it has app"),
        ("chart app 1.1.0 of", "none.tgz does not exist (404)"),
        ("chart app 1.2.0 of http://127.0.0.1:9", "cannot download http://127.0.0.1:9/index.yaml"),
        ("/nowhere", "index.yaml does not exist (404)"),
        ("/team/web 3.0.0", "it has 2.0.0+1, 1.0.0"),
        ("/team/app 1.0.0", "team/app"),
        ("here/none", "there is no such file or directory"),
        ("here/empty", "its Chart.yaml cannot be read"),
        ("here/needs", "it depends on sub"),
        ("here/text.tgz", "it is not a packed chart"),
        ("manifest http", "none.yaml does not exist (404)"),
        ("here/missing.yaml", "there is no such file or directory"),
    ] {
        assert!(said.lines().any(|line| line.contains(part) && line.contains(reason)), "{part}: {said}");
    }
    assert_eq!(said.lines().count(), 13, "{said}");
    assert!(site.server.requests().iter().all(|seen| seen.path != APP && !seen.path.contains("/blobs/")));
    assert!(!site.file("a.tar.zst").exists());
}

#[tokio::test]
async fn a_download_that_is_cut_goes_on_and_a_wrong_sum_is_refused() {
    let site = Site::new().await;
    let app = serve(&site);
    let one = manifest(&site, "  charts: [{name: app, repo: BASE/charts, version: 1.2.0}]\n");
    site.server.faults_at(APP, [Fault::CutAfter(150_000)]);
    site.export(&one, "store", "a.tar.zst").await.unwrap();
    let last = site.server.requests().into_iter().rfind(|seen| seen.path == APP).unwrap();
    assert_eq!(last.range.as_deref(), Some("bytes=150000-"));

    let mut other = app;
    other[100_000] ^= 1;
    site.server.put(APP, &other);
    let said = site.export(&one, "fresh", "b.tar.zst").await.unwrap_err();
    assert!(said.contains("chart app 1.2.0 of") && said.contains("has the wrong SHA-256"), "{said}");
    let sum = "0".repeat(64);
    let one = manifest(&site, &format!("  manifests: [{{url: BASE/files/crds.yaml, sha256: {sum}}}]\n"));
    let said = site.export(&one, "fresh", "b.tar.zst").await.unwrap_err();
    assert!(said.contains("manifest http") && said.contains("has the wrong SHA-256"), "{said}");
    assert!(!site.file("b.tar.zst").exists());

    // The repository serves another chart under this name.
    let wrong = packed("app", "9.9.9", 1);
    let index = "entries: {app: [{version: 1.2.0, urls: [files/app-1.2.0.tgz]}]}\n";
    site.server.put("/charts/index.yaml", index.as_bytes());
    site.server.put(APP, &wrong);
    let one = manifest(&site, "  charts: [{name: app, repo: BASE/charts, version: 1.2.0}]\n");
    let said = site.export(&one, "fresh", "b.tar.zst").await.unwrap_err();
    assert!(said.contains("the file is the chart app 9.9.9"), "{said}");
}

#[tokio::test]
async fn a_bundle_whose_charts_are_others_is_refused() {
    const CASES: [Case; 5] = [
        ("is the chart app 1.3.0", |parts| {
            *parts.bytes("charts/app-1.2.0.tgz") = packed("app", "1.3.0", 1);
        }),
        ("it is not a packed chart", |parts| *parts.bytes("charts/app-1.2.0.tgz") = b"none".to_vec()),
        ("cannot be the chart app 1.3.0", |parts| parts.index.charts[0].version = "1.3.0".into()),
        ("cannot be the manifest other", |parts| parts.index.manifests[0].name = "other".into()),
        ("cannot be where a part comes from", |parts| parts.index.charts[0].source = "\u{1b}".into()),
    ];
    let site = Site::new().await;
    serve(&site);
    site.export(&everything(&site), "store", "a.tar.zst").await.unwrap();
    expect_refused(&site, &CASES, "cannot be").await;
}

/// A version of kk without support for charts reads formats up to 2, and refuses others with a clear message.
#[tokio::test]
async fn only_a_bundle_with_charts_or_manifests_has_the_new_format() {
    let site = Site::new().await;
    serve(&site);
    let without = site.manifest("amd64", "team/app:v1").without_programs();
    let base = site.export(&without, "store", "base.tar.zst").await.unwrap().index;
    let all = everything(&site);
    let index = site.export(&all, "store", "whole.tar.zst").await.unwrap().index;
    assert_eq!((base.format, index.format), (1, 3));
    let only_manifests = Manifest { charts: [].into(), ..all.clone() };
    assert_eq!(site.export(&only_manifests, "store", "c.tar.zst").await.unwrap().index.format, 3);
    let text = String::from_utf8(base.text()).unwrap();
    assert!(!text.contains("charts") && !text.contains("manifests"), "{text}");

    site.export_with(&all, "store", "delta.tar.zst", Some(&base)).await.unwrap();
    let file = |name: &str| site.file(name);
    merge(&file("base.tar.zst"), &file("delta.tar.zst"), &file("merged.tar.zst"), &|_| {}).unwrap();
    assert!(fs::read(file("merged.tar.zst")).unwrap() == fs::read(file("whole.tar.zst")).unwrap());

    let mut changed = all;
    chart_directory(&file("here").join("own"), "own", "0.1.1");
    fs::write(file("here").join("more.yaml"), "kind: Service\n").unwrap();
    changed.charts.retain(|chart| !matches!(chart, ChartSource::Oci { .. }));
    changed.manifests.insert(ManifestFile {
        name: "again.yaml".into(),
        source: ManifestSource::Path(file("here").join("more.yaml").display().to_string()),
    });
    let newer = site.export(&changed, "store", "newer.tar.zst").await.unwrap().index;
    let sum = |text: &str| kk_util::sha256(text)[..12].to_owned();
    let (secret, service) = (sum("kind: Secret\n"), sum("kind: Service\n"));
    let parts = Difference::between(&index, &newer).parts;
    let parts: Vec<_> = parts.iter().map(|one| (&*one.part, one.old.join(","), one.new.join(","))).collect();
    let own = |text: &str| text.to_owned();
    assert_eq!(
        parts,
        [
            ("chart own", own("0.1.0"), own("0.1.1")),
            ("chart web", own("2.0.0+1"), own("")),
            ("manifest again.yaml", own(""), service.clone()),
            ("manifest more.yaml", secret, service),
        ]
    );
}

#[tokio::test]
async fn a_directory_gives_the_same_bytes_wherever_and_whenever_it_is_packed() {
    use std::os::unix::fs::{PermissionsExt as _, symlink};
    let site = Site::new().await;
    let pack = async |name: &str, change: &dyn Fn(PathBuf)| {
        let dir = site.file("here");
        let _ = fs::remove_dir_all(&dir);
        chart_directory(&dir, "own", "0.1.0");
        change(dir);
        let wanted = manifest(&site, "  charts: [{path: HERE}]\n");
        let exported = site.export(&wanted, "store", &format!("{name}.tar.zst")).await;
        exported.map(|exported| exported.index.sum("charts/own-0.1.0.tgz").unwrap().to_string())
    };
    let plain = pack("a", &|_| {}).await.unwrap();
    let same = pack("b", &|dir| {
        fs::write(dir.join("templates/.map.yaml.swp"), "x").unwrap();
        fs::set_permissions(dir.join("Chart.yaml"), fs::Permissions::from_mode(0o600)).unwrap();
        let file = fs::File::options().write(true).open(dir.join("templates/map.yaml")).unwrap();
        file.set_modified(std::time::UNIX_EPOCH).unwrap();
    });
    assert_eq!(same.await.unwrap(), plain);
    let other = pack("c", &|dir| fs::write(dir.join("values.yaml"), "a: 1\n").unwrap()).await.unwrap();
    assert_ne!(other, plain);
    let rules = "*.md\n/ci/\n";
    let with_rules = |dir: PathBuf| fs::write(dir.join(".helmignore"), rules).unwrap();
    let with_more = |dir: PathBuf| {
        fs::write(dir.join("README.md"), "x").unwrap();
        fs::create_dir(dir.join("ci")).unwrap();
        fs::write(dir.join("ci/values.yaml"), "x").unwrap();
        with_rules(dir);
    };
    assert_eq!(pack("d", &with_more).await.unwrap(), pack("d", &with_rules).await.unwrap());
    let link = |dir: PathBuf| symlink("/etc/passwd", dir.join("templates/link")).unwrap();
    let said = pack("e", &link).await.unwrap_err();
    assert!(said.contains("templates/link is neither a file nor a directory"), "{said}");
}

/// Obtains the content like a create without a bundle.
#[tokio::test]
async fn content_is_obtained_once_and_what_cannot_be_had_is_told() {
    let site = Site::new().await;
    let app = serve(&site);
    let wanted = everything(&site);
    let store = site.store("store", false);
    let manifests: BTreeSet<ManifestSource> =
        wanted.manifests.iter().map(|file| file.source.clone()).collect();
    let all = obtain(&wanted.charts, &manifests, None, &wanted.registry, &store).await.unwrap();
    assert_eq!((all.charts.len(), all.manifests.len()), (4, 3));
    let repository =
        wanted.charts.iter().find(|chart| matches!(chart, ChartSource::Repository { .. })).unwrap();
    assert_eq!(*all.charts[repository].0, app[..]);
    let asked = site.server.requests().len();
    assert_eq!(obtain(&wanted.charts, &manifests, None, &wanted.registry, &store).await.unwrap(), all);
    assert!(
        site.server.requests().drain(asked..).all(|seen| seen.path != APP && !seen.path.contains("/blobs/"))
    );
    let none =
        obtain(&BTreeSet::new(), &BTreeSet::new(), None, &wanted.registry, &site.store("none", false)).await;
    assert_eq!(none.unwrap(), Obtained::default());
    assert!(!site.file("none").exists(), "who wants nothing leaves nothing");
    site.server.put("/charts/index.yaml", b"entries: {}");
    let errors = obtain(&wanted.charts, &manifests, None, &wanted.registry, &store).await.unwrap_err();
    assert!(errors[0].to_string().contains("chart app 1.2.0 of"), "{errors:?}");
}

#[tokio::test]
async fn two_charts_with_one_name_and_other_content_do_not_fit_into_a_bundle() {
    let site = Site::new().await;
    serve(&site);
    chart_directory(&site.file("here"), "app", "1.2.0");
    let both = "  charts: [{name: app, repo: BASE/charts, version: 1.2.0}, {path: HERE}]\n";
    let said = site.export(&manifest(&site, both), "store", "a.tar.zst").await.unwrap_err();
    assert!(said.contains("already contains a different chart app 1.2.0"), "{said}");
}

/// Manifests of the catalogue travel like binaries: through the mirror, by the version in the Manifest.
#[tokio::test]
async fn manifests_of_the_catalogue_are_mirrored_and_found_by_their_versions() {
    let site = Site::new().await;
    let place =
        |file: &str| format!("/raw.githubusercontent.com/projectcalico/calico/v3.99.0/manifests/{file}");
    let files = [("calico.yaml", "kind: A\n"), ("calico-typha.yaml", "kind: B\n")];
    let mut own = "calico:\n".to_owned();
    for (file, text) in files {
        site.server.put(&place(file), text.as_bytes());
        let _ = writeln!(own, "  {file}: {{3.99.0: {}}}", kk_util::sha256(text.as_bytes()));
    }
    let catalogue = Catalogue::builtin().with_user("own", &own).unwrap();
    let mirrored = catalogue.clone().with_mirror(&site.server.base()).unwrap();
    let mut wanted = site.manifest("amd64", "team/app:v1").without_programs();
    wanted.images.clear();
    wanted.components.insert("calico", ["3.99.0".to_owned()].into());
    let (store, path) = (site.store("store", false), site.file("a.tar.zst"));
    let exported = export(&wanted, &mirrored, &store, &path, None, &|_| {}).await.unwrap();
    let names: Vec<_> = exported.index.manifests.iter().map(|part| part.name.as_str()).collect();
    assert_eq!(names, ["calico-typha-v3.99.0.yaml", "calico-v3.99.0.yaml"]);
    let bundle = Bundle::open(&path).unwrap();
    assert_eq!(bundle.versions(crate::Component::Calico), ["3.99.0"]);
    for (file, text) in files {
        let source = catalogue.manifest(crate::Component::Calico, "3.99.0", file).unwrap();
        let there = bundle.manifest(&source).unwrap();
        bundle.check(&source, &there).unwrap();
        assert_eq!(bundle.read(&there).await.unwrap(), text.as_bytes());
    }
    let other = own.replace(&kk_util::sha256(b"kind: A\n"), &"0".repeat(64));
    let catalogue = Catalogue::builtin().with_user("own", &other).unwrap();
    let source = catalogue.manifest(crate::Component::Calico, "3.99.0", "calico.yaml").unwrap();
    let refused = bundle.check(&source, &bundle.manifest(&source).unwrap()).unwrap_err().to_string();
    assert!(refused.contains("is not the file that the catalogue knows"), "{refused}");
    // The server has another file than the catalogue expects.
    let mirrored = catalogue.with_mirror(&site.server.base()).unwrap();
    let errors =
        export(&wanted, &mirrored, &site.store("other", false), &path, None, &|_| {}).await.unwrap_err();
    assert!(errors.iter().any(|error| error.to_string().contains("wrong SHA-256")), "{errors:?}");
}

/// The bundle fits every file, with and without a mirror.
#[tokio::test]
async fn the_chart_of_cilium_is_mirrored_and_keeps_the_name_of_its_repository() {
    let site = Site::new().await;
    let chart = packed("cilium", "1.20.2", 10);
    site.server.put(
        "/helm.cilium.io/index.yaml",
        b"entries: {cilium: [{version: 1.20.2, urls: [cilium-1.20.2.tgz]}]}",
    );
    site.server.put("/helm.cilium.io/cilium-1.20.2.tgz", &chart);
    let mut wanted =
        manifest(&site, "  charts: [{name: cilium, repo: 'https://helm.cilium.io', version: 1.20.2}]\n");
    wanted.images.clear();
    let mirrored = Catalogue::builtin().with_mirror(&site.server.base()).unwrap();
    let (store, path) = (site.store("store", false), site.file("a.tar.zst"));
    export(&wanted, &mirrored, &store, &path, None, &|_| {}).await.unwrap();
    let source = wanted.charts.first().unwrap();
    assert!(Bundle::open(&path).unwrap().chart(source).is_some());
    let store = site.store("other", false);
    let all =
        obtain(&wanted.charts, &BTreeSet::new(), mirrored.mirror(), &wanted.registry, &store).await.unwrap();
    assert_eq!(*all.charts[source].0, chart[..]);
    let open = source.clone().with_version("");
    assert_eq!(crate::newest_version(&open, mirrored.mirror(), &store).await.unwrap(), "1.20.2");
}
