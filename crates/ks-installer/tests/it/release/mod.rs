//! Tests the built-in definitions with real releases: `KS_ASSETS` is the unpacked source of ks-installer 3.4.1, `KS_CORE` the
//! chart ks-core of KubeSphere 4.1.3. This repository does not contain them, so these tests are ignored by default. Run them with
//! `cargo test -p ks-installer --test it release -- --ignored`.

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

use crate::programs;

mod images;
mod version_4;

const KUBERNETES: &str = "v1.36.0";

/// A payload of the release, and the example spec in the release.
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
        examples(self.payload(), &self.payload().components()[component]).unwrap()
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
    let expected = [
        "core",
        "metrics-server",
        "monitoring",
        "namespaces",
        "notification",
        "prometheus-operator",
        "redis",
    ];
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
            // Without this object, the Service that the operator creates would stay.
            assert_eq!(named(&objects, "Service", "kubelet")["metadata"]["namespace"], "kube-system");
            let args = objects.iter().map(Value::to_string).collect::<String>();
            assert!(args.contains("--kubelet-service=kube-system/kubelet"));
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

/// Enables all switches, with the settings that some of them need.
fn everything() -> Vec<(&'static str, Value)> {
    let names = [
        "/alerting/enabled",
        "/auditing/enabled",
        "/common/opensearch/dashboard/enabled",
        "/common/redis/enabled",
        "/common/redis/enableHA",
        "/devops/enabled",
        "/edgeruntime/enabled",
        "/edgeruntime/kubeedge/enabled",
        "/etcd/monitoring",
        "/events/enabled",
        "/gatekeeper/enabled",
        "/logging/enabled",
        "/metrics_server/enabled",
        "/openpitrix/store/enabled",
        "/servicemesh/enabled",
    ];
    let mut changes: Vec<(&str, Value)> = names.into_iter().map(|name| (name, true.into())).collect();
    changes.push(("/edgeruntime/kubeedge/cloudCore/cloudHub/advertiseAddress", json!(["192.0.2.9"])));
    changes.push(("/multicluster/clusterRole", "host".into()));
    changes.push(("/network/topology/type", "weave-scope".into()));
    changes.push(("/openpitrix/store/repository", "https://charts.example.com/stable".into()));
    changes
}

/// API versions that Kubernetes v1.26 and later do not have.
const GONE: [&str; 9] = [
    "admissionregistration.k8s.io/v1beta1",
    "apiextensions.k8s.io/v1beta1",
    "apiregistration.k8s.io/v1beta1",
    "autoscaling/v2beta1",
    "autoscaling/v2beta2",
    "batch/v1beta1",
    "networking.k8s.io/v1beta1",
    "policy/v1beta1",
    "rbac.authorization.k8s.io/v1beta1",
];

#[tokio::test]
#[ignore = "needs a release of KubeSphere"]
async fn what_cannot_be_is_refused_by_its_name_and_the_rest_is_rendered_the_same_each_time() {
    let release = release();
    let spec = release.spec(&everything());
    let desired = desired(release.payload(), &spec, KUBERNETES);
    let refused: Vec<String> =
        desired.refused.iter().map(|(name, failure)| format!("{name} {}", failure.reason.as_str())).collect();
    assert_eq!(refused, ["servicemesh NotSupported"]);
    let mut seen = BTreeSet::new();
    for name in desired.wanted.iter().filter(|name| !desired.refused.contains_key(*name)) {
        let kept = &release.payload().components()[name].keep;
        let generated = release.generated(name);
        let [first, second] =
            [release.objects(name, &spec, &generated).await, release.objects(name, &spec, &generated).await];
        assert!(!first.is_empty() && first.len() == second.len(), "{name}");
        for (object, again) in first.iter().zip(&second) {
            let (kind, metadata) = (object["kind"].as_str().unwrap(), &object["metadata"]);
            let is_kept = kept.iter().any(|kept| kept.kind == kind && metadata["name"] == kept.name.as_str());
            assert!(is_kept || object == again, "{name}: each rendering is another one: {kind} {metadata}");
            let version = object["apiVersion"].as_str().unwrap();
            assert!(!GONE.contains(&version), "{name}: {version} {kind}");
            let id = (kind.to_owned(), metadata["namespace"].to_string(), metadata["name"].to_string());
            assert!(seen.insert(id.clone()), "two components make {id:?}");
        }
    }
    // All objects of namespaced kinds have a namespace.
    let namespaces: BTreeSet<String> =
        seen.iter().filter(|(kind, ..)| kind == "Namespace").map(|(.., name)| name.clone()).collect();
    let made_here = [
        "argocd",
        "gatekeeper-system",
        "kubeedge",
        "kubesphere-devops-system",
        "kubesphere-logging-system",
        "weave",
    ];
    for name in made_here {
        assert!(namespaces.contains(&format!("\"{name}\"")), "{name}: {namespaces:?}");
    }
    for (kind, namespace, name) in &seen {
        assert!(
            namespace == "null" || namespaces.contains(namespace),
            "nobody makes {namespace} for {kind} {name}"
        );
    }
}

#[tokio::test]
#[ignore = "needs a release of KubeSphere"]
async fn logs_events_and_audits_go_where_the_spec_says() {
    let release = release();
    let on: [(&str, Value); 3] =
        ["/logging/enabled", "/events/enabled", "/auditing/enabled"].map(|path| (path, true.into()));
    let elsewhere = [
        ("/common/opensearch/externalOpensearchHost", "os.local".into()),
        ("/common/opensearch/externalOpensearchPort", 9201.into()),
    ];
    let es = [
        ("/common/opensearch/enabled", false.into()),
        ("/common/es/enabled", true.into()),
        ("/common/es/externalElasticsearchHost", "es.local".into()),
        ("/common/es/externalElasticsearchPort", 9202.into()),
    ];
    let own = "opensearch-cluster-data.kubesphere-logging-system.svc";
    for (more, kind, host, port, sets) in [
        (&[][..], "opensearch", own, 9200, 2),
        (&elsewhere[..], "opensearch", "os.local", 9201, 0),
        (&es[..], "es", "es.local", 9202, 0),
    ] {
        let spec = release.spec(&[&on[..], more].concat());
        let desired = desired(release.payload(), &spec, KUBERNETES);
        assert!(desired.refused.is_empty(), "{:?}", desired.refused);
        for name in ["logging", "events", "auditing"] {
            let objects = release.objects(name, &spec, &release.generated(name)).await;
            let outputs: Vec<&Value> = objects.iter().filter(|object| object["kind"] == "Output").collect();
            let [output] = outputs.as_slice() else { panic!("{name}: {outputs:?}") };
            assert_eq!(
                (&output["spec"][kind]["host"], &output["spec"][kind]["port"]),
                (&json!(host), &json!(port)),
                "{name}"
            );
        }
        let (store, other) =
            if kind == "es" { ("elasticsearch", "opensearch") } else { ("opensearch", "elasticsearch") };
        assert!(desired.wanted.contains(store) && !desired.wanted.contains(other), "{:?}", desired.wanted);
        let objects = release.objects(store, &spec, &Map::new()).await;
        assert_eq!((count(&objects, "StatefulSet"), count(&objects, "CronJob")), (sets, 1));
    }
    let nowhere = release.spec(&[&on[..], &[("/common/opensearch/enabled", false.into())]].concat());
    let refused = desired(release.payload(), &nowhere, KUBERNETES).refused;
    assert_eq!(refused.keys().map(String::as_str).collect::<Vec<_>>(), ["auditing", "events", "logging"]);
}

#[tokio::test]
#[ignore = "needs a release of KubeSphere"]
async fn sidecars_inputs_and_builders_follow_the_container_runtime() {
    let release = release();
    let spec = release.spec(&everything());
    for (version, runtime, parser, builder) in [
        ("containerd://2.4.2", "containerd", "cri", "podman"),
        ("docker://29.0", "docker", "docker", "docker"),
    ] {
        release.renderer.nodes.see(&[json!({"status": {"nodeInfo": {"containerRuntimeVersion": version}}})]);
        let logging = release.objects("logging", &spec, &release.generated("logging")).await;
        assert_eq!(named(&logging, "Input", "tail")["spec"]["tail"]["parser"], parser);
        assert_eq!(named(&logging, "Input", runtime)["spec"]["systemd"]["tag"], format!("service.{runtime}"));
        let filters = logging.iter().filter(|object| object["kind"] == "Filter");
        assert_eq!(
            filters.filter(|object| object["metadata"]["name"] == "containerd").count(),
            usize::from(runtime != "docker")
        );
        let devops = release.objects("devops", &spec, &release.generated("devops")).await;
        let agents = named(&devops, "ConfigMap", "jenkins-casc-config").to_string();
        assert_eq!(agents.contains("-podman"), builder == "podman");
    }
}

#[tokio::test]
#[ignore = "needs a release of KubeSphere"]
async fn webhooks_are_called_by_authorities_that_were_generated() {
    let release = release();
    let spec = release.spec(&everything());
    for (name, value, secret, key) in [
        ("events", "admission", "ks-events-admission", "tls.crt"),
        ("logging", "injector", "logsidecar-injector-admission-certs", "server.crt"),
        ("notification", "webhook", "notification-manager-webhook-server-cert", "tls.crt"),
        ("devops", "s2i", "s2i-webhook-server-cert", "tls.crt"),
        ("multicluster", "kubefed", "kubefed-admission-webhook-serving-cert", "tls.crt"),
    ] {
        let generated = release.generated(name);
        let encoded = |part: &str| {
            Value::from(base64::Engine::encode(
                &base64::engine::general_purpose::STANDARD,
                generated[value][part].as_str().unwrap(),
            ))
        };
        let objects = release.objects(name, &spec, &generated).await;
        assert_eq!(named(&objects, "Secret", secret)["data"][key], encoded("cert"), "{name}");
        let hooks = objects
            .iter()
            .filter(|object| object["kind"].as_str().unwrap().ends_with("WebhookConfiguration"));
        let hooks: Vec<&Value> = hooks.flat_map(|object| object["webhooks"].as_array().unwrap()).collect();
        if name == "multicluster" {
            // ks-controller-manager serves these webhooks, with the certificate of the core.
            for kind in ["federatednotificationconfigs", "federatednotificationreceivers"] {
                let definition =
                    named(&objects, "CustomResourceDefinition", &format!("{kind}.types.kubefed.io"));
                let client = &definition["spec"]["conversion"]["webhook"]["clientConfig"];
                let core = generated["webhook"]["ca"].as_str().unwrap();
                let core = base64::Engine::encode(&base64::engine::general_purpose::STANDARD, core);
                assert_eq!(client["caBundle"], core, "{kind}");
                assert_eq!(client["service"]["name"], "ks-controller-manager", "{kind}");
            }
        }
        assert!(!hooks.is_empty(), "{name}");
        for hook in hooks {
            assert_eq!(hook["clientConfig"]["caBundle"], encoded("ca"), "{name}");
            let service = &hook["clientConfig"]["service"];
            let host = format!(
                "{}.{}.svc",
                service["name"].as_str().unwrap(),
                service["namespace"].as_str().unwrap()
            );
            let made =
                release.payload().components()[name].generated.iter().find(|one| one.name == value).unwrap();
            assert!(made.certificate.as_ref().unwrap().contains(&host), "{name}: {host}");
        }
    }
}

#[tokio::test]
#[ignore = "needs a release of KubeSphere"]
async fn controllers_make_what_is_waited_for_of_objects_that_are_there() {
    let release = release();
    let spec = release.spec(&everything());
    let mut checked = BTreeSet::new();
    // The custom resource of each workload, and the name that its controller chooses.
    for (waiting, (made_kind, made), component, kind, name) in [
        ("logging", ("DaemonSet", "fluent-bit"), "fluentbit-operator", "FluentBit", "fluent-bit"),
        ("events", ("DaemonSet", "fluent-bit"), "fluentbit-operator", "FluentBit", "fluent-bit"),
        ("events", ("Deployment", "ks-events-exporter"), "events", "Exporter", "ks-events-exporter"),
        ("events", ("Deployment", "ks-events-ruler"), "events", "Ruler", "ks-events-ruler"),
        ("auditing", ("DaemonSet", "fluent-bit"), "fluentbit-operator", "FluentBit", "fluent-bit"),
        (
            "auditing",
            ("Deployment", "kube-auditing-webhook-deploy"),
            "auditing",
            "Webhook",
            "kube-auditing-webhook",
        ),
        (
            "notification",
            ("Deployment", "notification-manager-deployment"),
            "notification",
            "NotificationManager",
            "notification-manager",
        ),
    ] {
        checked.insert((waiting.to_owned(), made_kind.to_owned(), made.to_owned()));
        let awaited = &release.payload().components()[waiting].waits_for;
        let one = awaited.iter().find(|one| one.kind == made_kind && one.name == made);
        let one = one.unwrap_or_else(|| panic!("{waiting}: {awaited:?}"));
        let objects = release.objects(component, &spec, &release.generated(component)).await;
        let namespace = &named(&objects, kind, name)["metadata"]["namespace"];
        assert!(namespace.is_null() || *namespace == one.namespace.as_str(), "{waiting}: {namespace}");
    }
    let all = release.payload().components().iter().flat_map(|(name, component)| {
        component.waits_for.iter().map(|one| (name.clone(), one.kind.clone(), one.name.clone()))
    });
    assert_eq!(all.collect::<BTreeSet<_>>(), checked, "each that is waited for is one of them");
}

#[tokio::test]
#[ignore = "needs a release of KubeSphere"]
async fn what_devops_needs_is_there_as_long_as_it_is() {
    let release = release();
    let s3 = ("/common/s3", json!({"endpoint": "http://s3.local"}));
    for (changes, expected) in [
        (vec![("/devops/enabled", true.into())], &["minio", "openldap"][..]),
        (vec![("/devops/enabled", true.into()), s3.clone()], &["minio", "openldap"]),
        (vec![("/openpitrix/store/enabled", true.into())], &["minio"]),
        (vec![("/openpitrix/store/enabled", true.into()), s3], &[]),
        (vec![("/common/openldap/enabled", true.into())], &["openldap"]),
        (vec![], &[]),
    ] {
        let wanted = desired(release.payload(), &release.spec(&changes), KUBERNETES).wanted;
        let found: Vec<&str> =
            wanted.iter().map(String::as_str).filter(|name| ["minio", "openldap"].contains(name)).collect();
        assert_eq!(found, expected, "{changes:?}");
    }
    for (argocd, expected) in [
        (json!({"namespace": "mine"}), &["argocd"][..]),
        (json!({"namespace": "argocd"}), &[]),
        (json!({"namespace": "mine", "installation": "custom"}), &[]),
    ] {
        let spec = release.spec(&[("/devops/enabled", true.into()), ("/devops/argocd", argocd.clone())]);
        let refused = desired(release.payload(), &spec, KUBERNETES).refused;
        assert_eq!(refused.keys().map(String::as_str).collect::<Vec<_>>(), expected, "{argocd}");
    }
}

#[tokio::test]
#[ignore = "needs a release of KubeSphere"]
async fn the_iptables_manager_of_kubeedge_comes_and_goes_with_its_setting() {
    let release = release();
    for (said, expected) in [(Value::Null, 1), (true.into(), 1), (false.into(), 0)] {
        let mut changes = everything();
        changes.push(("/edgeruntime/kubeedge/iptables-manager/enabled", said.clone()));
        let objects = release.objects("edgeruntime", &release.spec(&changes), &Map::new()).await;
        assert_eq!(count(&objects, "DaemonSet"), expected, "{said}");
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
