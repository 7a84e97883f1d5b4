//! Our definitions against real releases: `KS_ASSETS` is the unpacked source of ks-installer 3.4.1, `KS_CORE` the chart ks-core of
//! KubeSphere 4.1.3. Nothing of them lies here, so these tests are ignored: `cargo test -p ks-installer --test release -- --ignored`
//! runs them.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;

use ks_installer::engine::{desired, examples};
use ks_installer::payload::{Payload, build_from};
use ks_installer::render::{Inputs, Nodes, Renderer, images_of};
use ks_installer::rights;
use serde_json::{Map, Value, json};
use tempfile::TempDir;

#[path = "../../shell-operator/tests/cluster/programs.rs"]
mod programs;

const KUBERNETES: &str = "v1.36.4";

/// A payload of the release, and its own example of a spec.
struct Release {
    _dir: TempDir,
    renderer: Renderer,
    example: Value,
}

fn release() -> Release {
    release_of("KS_ASSETS", "the unpacked source of ks-installer v3.4.1")
}

fn release_of(variable: &str, what: &str) -> Release {
    let assets = std::env::var_os(variable).map(PathBuf::from);
    let assets = assets.unwrap_or_else(|| panic!("set {variable} to {what}"));
    let dir = TempDir::new().unwrap();
    let payload = build_from(&assets, &dir.path().join("payload"), "1").unwrap();
    let example =
        std::fs::read_to_string(assets.join("deploy/cluster-configuration.yaml")).unwrap_or_default();
    let example: Value = serde_saphyr::from_str(&example).unwrap_or_default();
    let helm = std::env::var_os("KS_INSTALLER_HELM").map(PathBuf::from);
    let (payload, helm) = (Arc::new(payload), helm.unwrap_or_else(|| programs::find("helm-", "helm")));
    let renderer = Renderer { payload, helm, kubernetes: KUBERNETES.to_owned(), nodes: Nodes::default() };
    Release { _dir: dir, renderer, example: example["spec"].clone() }
}

impl Release {
    fn spec(&self, changes: &[(&str, Value)]) -> Value {
        let mut spec = self.example.clone();
        for (pointer, value) in changes {
            let keys = pointer.trim_start_matches('/').split('/');
            *keys.fold(&mut spec, |at, key| &mut at[key]) = value.clone();
        }
        ks_installer::spec::effective(&spec, &Value::Null)
    }

    fn payload(&self) -> &Payload {
        &self.renderer.payload
    }

    fn generated(&self, component: &str) -> Map<String, Value> {
        examples(&self.payload().components()[component]).unwrap()
    }

    async fn objects(&self, component: &str, spec: &Value, generated: &Map<String, Value>) -> Vec<Value> {
        let component = &self.payload().components()[component];
        let objects = self.renderer.objects(component, Inputs { spec, generated }).await;
        objects.unwrap_or_else(|error| panic!("{}: {error}", component.name))
    }
}

fn count(objects: &[Value], kind: &str) -> usize {
    objects.iter().filter(|object| object["kind"] == kind).count()
}

fn named<'a>(objects: &'a [Value], kind: &str, name: &str) -> &'a Value {
    let found = objects.iter().find(|object| object["kind"] == kind && object["metadata"]["name"] == name);
    found.unwrap_or_else(|| panic!("there is no {kind} {name}"))
}

#[tokio::test]
#[ignore = "needs a release of KubeSphere"]
async fn the_releases_own_example_is_rendered_as_a_whole() {
    let release = release();
    let spec =
        release.spec(&[("/metrics_server/enabled", true.into()), ("/common/redis/enabled", true.into())]);
    let desired = desired(release.payload(), &spec, KUBERNETES);
    assert!(desired.refused.is_empty(), "{:?}", desired.refused);
    let expected = ["core", "metrics-server", "monitoring", "namespaces", "prometheus-operator", "redis"];
    assert_eq!(desired.wanted.iter().map(String::as_str).collect::<Vec<_>>(), expected);
    let (mut seen, mut images) = (BTreeSet::new(), BTreeSet::new());
    for name in &desired.wanted {
        for object in release.objects(name, &spec, &release.generated(name)).await {
            images_of(&object, &mut images);
            let (kind, metadata) = (object["kind"].to_string(), &object["metadata"]);
            let id = (kind, metadata["namespace"].to_string(), metadata["name"].to_string());
            assert!(seen.insert(id.clone()), "two components make {id:?}");
        }
    }
    for image in ["kubesphere/ks-apiserver:v3.4.1", "prom/prometheus:v2.39.1", "redis:5.0.14-alpine"] {
        assert!(images.contains(image), "{image}: {images:?}");
    }
    assert!(
        images.iter().all(|image| image
            .rsplit_once(':')
            .is_some_and(|(name, tag)| !name.is_empty() && !tag.is_empty()))
    );
}

#[tokio::test]
#[ignore = "needs a release of KubeSphere"]
async fn what_the_chart_makes_anew_each_time_is_what_was_generated() {
    let release = release();
    let (spec, generated) = (release.spec(&[]), release.generated("core"));
    let first = release.objects("core", &spec, &generated).await;
    assert_eq!(first, release.objects("core", &spec, &generated).await, "each rendering is another one");
    assert_eq!(count(&first, "CustomResourceDefinition"), 34);
    let secret = named(&first, "Secret", "ks-controller-manager-webhook-cert");
    let hook = named(&first, "ValidatingWebhookConfiguration", "users.iam.kubesphere.io");
    assert_eq!(secret["data"]["ca.crt"], hook["webhooks"][0]["clientConfig"]["caBundle"]);
    let config = named(&first, "ConfigMap", "kubesphere-config")["data"]["kubesphere.yaml"].as_str().unwrap();
    let config: Value = serde_saphyr::from_str(config).unwrap();
    assert_eq!(config["authentication"]["jwtSecret"], generated["jwt"]);
    assert_eq!(config["multicluster"]["clusterRole"], "none");
    assert_eq!(named(&first, "User", "admin")["spec"]["password"], generated["admin"]);
}

#[tokio::test]
#[ignore = "needs a release of KubeSphere"]
async fn images_come_from_the_users_registry_also_where_a_controller_reads_them() {
    let release = release();
    let spec =
        release.spec(&[("/local_registry", "r.local:5000".into()), ("/namespace_override", "ks".into())]);
    for name in ["core", "monitoring", "prometheus-operator", "metrics-server"] {
        let objects = release.objects(name, &spec, &release.generated(name)).await;
        let mut images = BTreeSet::new();
        for object in &objects {
            images_of(object, &mut images);
        }
        assert!(images.iter().all(|image| image.starts_with("r.local:5000/ks/")), "{name}: {images:?}");
        if name == "prometheus-operator" {
            let args = objects.iter().map(Value::to_string).collect::<String>();
            assert!(
                args.contains(
                    "--prometheus-config-reloader=r.local:5000/ks/prometheus-config-reloader:v0.55.1"
                )
            );
        }
    }
}

#[tokio::test]
#[ignore = "needs a release of KubeSphere"]
async fn monitoring_of_etcd_comes_and_goes_with_its_setting() {
    let release = release();
    for (on, secrets) in [(false, Value::Null), (true, json!(["kube-etcd-client-certs"]))] {
        let endpoints = "192.0.2.1,192.0.2.2".into();
        let spec = release.spec(&[("/etcd/monitoring", on.into()), ("/etcd/endpointIps", endpoints)]);
        let objects = release.objects("monitoring", &spec, &Map::new()).await;
        assert_eq!(named(&objects, "Prometheus", "k8s")["spec"]["secrets"], secrets);
        assert_eq!(count(&objects, "Endpoints"), usize::from(on));
        if on {
            let addresses = &named(&objects, "Endpoints", "etcd")["subsets"][0]["addresses"];
            assert_eq!(*addresses, json!([{"ip": "192.0.2.1"}, {"ip": "192.0.2.2"}]));
        }
    }
}

#[tokio::test]
#[ignore = "needs a release of KubeSphere"]
async fn replicas_follow_the_number_of_nodes_and_the_spec() {
    let release = release();
    for (nodes, said, expected) in [(1, None, 1), (5, None, 2), (5, Some(4), 4)] {
        release.renderer.nodes.see(&vec![Value::Null; nodes]);
        let said = said.map_or(Value::Null, |count| json!({ "replicas": count }));
        let spec = release.spec(&[("/monitoring/prometheus", said)]);
        let objects = release.objects("monitoring", &spec, &Map::new()).await;
        assert_eq!(named(&objects, "Prometheus", "k8s")["spec"]["replicas"], expected, "{nodes}");
    }
}

#[tokio::test]
#[ignore = "needs a release of KubeSphere"]
async fn what_cannot_be_is_refused_by_its_name_and_the_rest_is_rendered() {
    let release = release();
    let names =
        ["alerting", "auditing", "devops", "edgeruntime", "events", "gatekeeper", "logging", "servicemesh"];
    let mut changes: Vec<(String, Value)> =
        names.iter().map(|name| (format!("/{name}/enabled"), true.into())).collect();
    changes.push(("/common/redis/enableHA".to_owned(), true.into()));
    changes.push(("/common/redis/enabled".to_owned(), true.into()));
    changes.push(("/multicluster/clusterRole".to_owned(), "host".into()));
    changes.push(("/network/topology/type".to_owned(), "weave-scope".into()));
    let changes: Vec<(&str, Value)> =
        changes.iter().map(|(path, value)| (path.as_str(), value.clone())).collect();
    let spec = release.spec(&changes);
    let desired = desired(release.payload(), &spec, KUBERNETES);
    let refused: Vec<String> =
        desired.refused.iter().map(|(name, failure)| format!("{name} {}", failure.reason.as_str())).collect();
    let expected = [
        "auditing NoDefinition",
        "devops NoDefinition",
        "edgeruntime NoDefinition",
        "events NoDefinition",
        "gatekeeper NotSupported",
        "logging NoDefinition",
        "multicluster NotSupported",
        "redis NotSupported",
        "servicemesh NoDefinition",
        "topology NotSupported",
    ];
    assert_eq!(refused, expected);
    for name in desired.wanted.iter().filter(|name| !desired.refused.contains_key(*name)) {
        assert!(!release.objects(name, &spec, &release.generated(name)).await.is_empty(), "{name}");
    }
}

#[tokio::test]
#[ignore = "needs a release of KubeSphere"]
async fn rights_for_it_are_none_for_everything() {
    let release = release();
    let roles = rights::roles(&release.renderer).await.unwrap();
    for rule in roles.iter().flat_map(|role| role["rules"].as_array().unwrap()) {
        for key in ["apiGroups", "resources", "verbs"] {
            assert!(rule[key].as_array().unwrap().iter().all(|one| one != "*"), "{rule}");
        }
    }
}

#[tokio::test]
#[ignore = "needs a release of KubeSphere"]
async fn the_chart_of_version_4_is_rendered_the_same_each_time() {
    let release = release_of("KS_CORE", "the chart ks-core of KubeSphere 4.1.3");
    let generated = release.generated("core");
    let spec = release
        .spec(&[("/local_registry", "r.local:5000".into()), ("/common/core/console/port", 30881.into())]);
    assert!(desired(release.payload(), &spec, KUBERNETES).refused.is_empty());
    let first = release.objects("core", &spec, &generated).await;
    assert_eq!(first, release.objects("core", &spec, &generated).await, "each rendering is another one");
    let secret = named(&first, "Secret", "ks-controller-manager-webhook-cert");
    for hook in
        first.iter().filter(|object| object["kind"].as_str().unwrap().ends_with("WebhookConfiguration"))
    {
        assert_eq!(secret["data"]["ca.crt"], hook["webhooks"][0]["clientConfig"]["caBundle"], "{hook}");
    }
    assert_eq!(named(&first, "Service", "ks-console")["spec"]["ports"][0]["nodePort"], 30881);
    assert_eq!(named(&first, "User", "admin")["spec"]["password"], generated["admin"]);
    let mut images = BTreeSet::new();
    for object in &first {
        images_of(object, &mut images);
    }
    assert!(
        !images.is_empty() && images.iter().all(|image| image.starts_with("r.local:5000/")),
        "{images:?}"
    );
}

#[tokio::test]
#[ignore = "needs a release of KubeSphere"]
async fn what_helm_keeps_of_version_4_fits_into_a_secret() {
    let release = release_of("KS_CORE", "the chart ks-core of KubeSphere 4.1.3");
    let (spec, generated) = (release.spec(&[]), release.generated("core"));
    let component = &release.payload().components()["core"];
    let inputs = Inputs { spec: &spec, generated: &generated };
    let rendering = release.renderer.rendering(component, inputs).await.unwrap();
    let [recorded] = rendering.releases.as_slice() else { panic!("one release is recorded") };
    let content = recorded.content(&rendering.objects).unwrap();
    assert_eq!(content["chart"]["metadata"]["name"], "ks-core");
    let mut packed =
        flate2::read::GzEncoder::new(std::io::Cursor::new(content.to_string()), flate2::Compression::best());
    let size = std::io::copy(&mut packed, &mut std::io::sink()).unwrap() * 4 / 3;
    assert!((10_000..700_000).contains(&size), "{size} bytes, of 1 MiB at most");
    // helm would delete what is in the manifest of one revision and not in the next.
    assert!(!content["manifest"].as_str().unwrap().contains("\"CustomResourceDefinition\""));
    let ours = rendering
        .objects
        .iter()
        .filter(|object| object["metadata"]["annotations"]["meta.helm.sh/release-name"] == "ks-core");
    assert!(ours.count() > 50);
}
