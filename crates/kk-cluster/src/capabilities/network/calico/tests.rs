//! The adapted manifest, with small documents of our own and with the published files where they are there, and the findings.

use std::{
    collections::BTreeMap,
    fmt::Write as _,
    fs,
    path::{Path, PathBuf},
    sync::Arc,
};

use kk_artifact::Component;
use kk_config::{Arch, Spec};
use kk_engine::{FileFact, Finding, Plan, Severity};
use serde_json::{Value, json};

use super::{AGENT, pools::POOLS};
use crate::{
    base::{
        cluster_state::{API, INITIALISED},
        probed::Probed,
        supply::PublishedFile,
    },
    capabilities::kube_proxy::services::SERVICES,
    commands::{create_cluster, session::Session},
    control_plane::ControlPlane,
    model::{command::Command, options::Options},
    testing::{self, KUBERNETES},
};

/// The directory with calico's files, named `calico-v3.31.7.yaml` and `calico-typha-v3.31.7.yaml`.
const UPSTREAM: &str = "KK_UPSTREAM";
/// The published versions that the catalogue knows.
const VERSIONS: [&str; 3] = ["3.30.7", "3.31.7", "3.32.1"];

/// A file with this section `network`, and two nodes.
fn spec(network: &str) -> Spec {
    testing::spec(&format!(
        "apiVersion: kubekey.kubesphere.io/v1alpha2\nkind: Cluster\nmetadata: {{name: t}}\nspec:\n  hosts:\n  \
         - {{name: a, address: 192.0.2.1, internalAddress: '192.0.2.1,fd00::1'}}\n  \
         - {{name: b, address: 192.0.2.2, internalAddress: '192.0.2.2,fd00::2'}}\n  \
         roleGroups: {{etcd: [a], control-plane: [a], worker: [b]}}\n  network: {{plugin: calico{network}}}\n"
    ))
}

fn file(spec: &Spec) -> PublishedFile {
    let typha = super::settings(spec).unwrap().typha.is_some();
    PublishedFile {
        component: Component::Calico,
        name: if typha { "calico-typha.yaml" } else { "calico.yaml" },
    }
}

/// Documents with the paths that the settings need, and nothing else.
fn small() -> Vec<Value> {
    let endpoint = json!([{"configMapRef": {"name": "kubernetes-services-endpoint", "optional": true}}]);
    let variable = |name: &str, value: &str| json!({"name": name, "value": value});
    let node = json!({
        "name": "calico-node", "image": "quay.io/calico/node:v3.0.0", "envFrom": endpoint,
        "env": [
            variable("CALICO_IPV4POOL_IPIP", "Always"), variable("CALICO_IPV4POOL_VXLAN", "Never"),
            variable("CALICO_IPV6POOL_VXLAN", "Never"), variable("FELIX_IPV6SUPPORT", "false"),
        ],
        "livenessProbe": {"exec": {"command": ["/bin/calico-node", "-felix-live", "-bird-live"]}},
        "readinessProbe": {"exec": {"command": ["/bin/calico-node", "-felix-ready", "-bird-ready"]}},
    });
    let init = |name: &str| json!({"name": name, "image": "quay.io/calico/cni:v3.0.0", "env": [], "envFrom": endpoint});
    let deployment = |name: &str, container: Value| {
        json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name, "namespace": "kube-system"},
            "spec": {"replicas": 1, "template": {"metadata": {}, "spec": {
                "nodeSelector": {"kubernetes.io/os": "linux"}, "containers": [container]}}}})
    };
    vec![
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "calico-config", "namespace": "kube-system"},
            "data": {"veth_mtu": "0", "calico_backend": "bird", "cni_network_config": r#"{"ipam": {"type": "calico-ipam"}}"#}}),
        json!({"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"name": "calico-node", "namespace": "kube-system"},
            "spec": {"updateStrategy": {"rollingUpdate": {"maxUnavailable": 1}}, "template": {"metadata": {}, "spec": {
                "initContainers": [init("upgrade-ipam"), init("install-cni")], "containers": [node]}}}}),
        deployment(
            "calico-kube-controllers",
            json!({"name": "c", "image": "quay.io/calico/kube-controllers:v3.0.0"}),
        ),
        deployment(
            "calico-typha",
            json!({"name": "calico-typha", "image": "quay.io/calico/typha:v3.0.0", "envFrom": endpoint}),
        ),
    ]
}

async fn session(spec: &Spec, directory: &Path, documents: Vec<Value>) -> Session {
    let session = testing::session(spec.clone(), directory);
    session.set_published(file(spec), Ok(documents.into())).await;
    session
}

/// The objects that a create applies, or why the documents cannot be adapted.
async fn applied(spec: &Spec, documents: Vec<Value>) -> Result<Vec<Value>, String> {
    let directory = tempfile::tempdir().unwrap();
    let (session, fresh) = (session(spec, directory.path(), documents).await, testing::fresh(spec));
    let inputs = session.create_inputs(&fresh).await.map_err(|error| error.to_string())?;
    let manifest = inputs.requirements.manifests.iter().find(|manifest| manifest.name == "calico").unwrap();
    let list: Value = serde_json::from_str(&manifest.file).unwrap();
    assert_eq!(list["items"].as_array().unwrap().len(), manifest.objects.len());
    assert!(manifest.note.len() < 200, "{}", manifest.note);
    Ok(list["items"].as_array().unwrap().clone())
}

/// Every text of a document, by its path. Items of lists are named where they have names.
fn flat(value: &Value, path: &str, out: &mut BTreeMap<String, String>) {
    match value {
        Value::Object(fields) => {
            for (key, value) in fields {
                flat(value, &format!("{path}/{key}"), out);
            }
        }
        Value::Array(items) => {
            for (i, item) in items.iter().enumerate() {
                let name = item["name"].as_str().map_or_else(|| i.to_string(), str::to_owned);
                flat(item, &format!("{path}[{name}]"), out);
            }
        }
        other => drop(out.insert(path.to_owned(), other.to_string())),
    }
}

/// The difference between the documents, one path a line.
fn changes(before: &[Value], after: &[Value]) -> Vec<String> {
    let all = |documents: &[Value]| {
        let mut out = BTreeMap::new();
        for document in documents {
            let path = format!(
                "{} {}",
                document["kind"].as_str().unwrap(),
                document["metadata"]["name"].as_str().unwrap()
            );
            flat(document, &path, &mut out);
        }
        out
    };
    let (before, after) = (all(before), all(after));
    let mut lines: Vec<String> =
        before.keys().filter(|path| !after.contains_key(*path)).map(|path| format!("- {path}")).collect();
    lines.extend(after.iter().filter_map(|(path, value)| match before.get(path) {
        Some(there) if there == value => None,
        // A checksum of the configuration.
        _ if path.ends_with("kubekey.kubesphere.io/config") => Some(format!("+ {path}: SUM")),
        // A configuration within a text.
        Some(_) if value.len() > 200 => Some(format!("~ {path}: changed")),
        Some(_) => Some(format!("~ {path}: {value}")),
        None => Some(format!("+ {path}: {value}")),
    }));
    lines
}

const CASES: [(&str, &str); 7] = [
    ("ipip", ""),
    ("vxlan", ", calico: {vxlanMode: CrossSubnet, ipipMode: Never}"),
    (
        "dual stack",
        ", kubePodsCIDR: '10.233.64.0/18,fd00:1::/112', kubeServiceCIDR: '10.233.0.0/18,fd00:2::/112', calico: {vxlanMode: Always, ipv6NatOutgoing: true}",
    ),
    (
        "typha",
        ", calico: {typha: {enabled: true, replicas: 2, nodeSelector: {x: y}}, controller: {nodeSelector: {a: b}}}",
    ),
    (
        "mtu",
        ", calico: {vethMTU: 1440, blockSize: 24, ipv4NatOutgoing: false, ipAutoDetectionMethod: interface=eth0}",
    ),
    ("no pool", ", calico: {defaultIPPOOL: false, ipipMode: Never}"),
    ("nftables", "}\n  kubernetes: {proxyMode: nftables"),
];

#[tokio::test]
async fn settings_of_the_file_are_in_the_objects() {
    let mut shown = String::new();
    for (name, network) in CASES {
        let lines = changes(&small(), &applied(&spec(network), small()).await.unwrap());
        let _ = write!(shown, "# {name}\n{}\n\n", lines.join("\n"));
    }
    insta::assert_snapshot!(shown);
}

#[tokio::test]
async fn pods_start_again_when_their_configuration_changes() {
    let annotation = async |network: &str| {
        let objects = applied(&spec(network), small()).await.unwrap();
        let set = objects.iter().find(|object| object["kind"] == "DaemonSet").unwrap();
        set.pointer("/spec/template/metadata/annotations").unwrap().to_string()
    };
    assert_ne!(annotation("").await, annotation(", calico: {vethMTU: 1440}").await);
}

#[tokio::test]
async fn a_published_file_without_a_needed_path_is_refused_by_that_path() {
    type Spoil = fn(&mut Vec<Value>);
    let cases: [(&str, Spoil, &str); 4] = [
        ("", |all| drop(all.remove(0)), "ConfigMap calico-config"),
        (
            "",
            |all| {
                drop(
                    all[1]
                        .pointer_mut("/spec/template/spec/containers/0")
                        .unwrap()
                        .as_object_mut()
                        .unwrap()
                        .shift_remove("envFrom"),
                );
            },
            "DaemonSet calico-node/spec/template/spec/containers[calico-node]/envFrom",
        ),
        (
            ", calico: {vxlanMode: Always}",
            |all| {
                all[1]["spec"]["template"]["spec"]["containers"][0]["livenessProbe"]["exec"]["command"] =
                    json!(["x"]);
            },
            "livenessProbe/exec/command with -bird-live",
        ),
        (", calico: {typha: {enabled: true}}", |all| drop(all.pop()), "Deployment calico-typha"),
    ];
    for (network, spoil, path) in cases {
        let mut documents = small();
        spoil(&mut documents);
        let error = applied(&spec(network), documents).await.unwrap_err();
        assert!(error.contains("cannot be adapted: it has no") && error.contains(path), "{error}");
    }
}

/// Hosts pull, bundles contain and the cluster runs the images of the published file.
#[tokio::test]
async fn images_have_the_names_in_the_published_file() {
    let directory = tempfile::tempdir().unwrap();
    for (private, namespace, expected) in
        [(None, None, "quay.io/calico/node:v3.0.0"), (Some("hub:5000"), Some("x"), "hub:5000/x/node:v3.0.0")]
    {
        let mut spec = spec("");
        spec.registry.private_registry = private.map(str::to_owned);
        spec.registry.namespace_override = namespace.map(str::to_owned);
        let (session, fresh) = (session(&spec, directory.path(), small()).await, testing::fresh(&spec));
        let inputs = session.create_inputs(&fresh).await.unwrap();
        let manifest =
            inputs.requirements.manifests.iter().find(|manifest| manifest.name == "calico").unwrap();
        assert!(manifest.file.contains(&format!("\"image\":\"{expected}\"")), "{}", manifest.file);
        for host in ["a", "b"] {
            let images = &inputs.requirements.images[host];
            assert_eq!(images.iter().filter(|(_, name)| name == expected).count(), 1, "{host}: {images:?}");
        }
        let bundle = session.manifest(&[Arch::Amd64].into()).await.unwrap();
        let images: Vec<_> = bundle.images.iter().map(ToString::to_string).collect();
        assert!(images.contains(&"quay.io/calico/node:v3.0.0".to_owned()), "{images:?}");
        assert!(!images.iter().any(|name| name.contains("flannel")), "{images:?}");
        assert!(bundle.components.contains_key("calico"));
        assert!(
            kk_config::load_manifest("written", &bundle.text()).unwrap().0.components.contains_key("calico")
        );
    }
}

async fn findings(spec: &Spec, probed: &Probed, documents: Option<Vec<Value>>) -> Vec<Finding> {
    let directory = tempfile::tempdir().unwrap();
    let session = testing::session(spec.clone(), directory.path());
    let missing =
        Finding { severity: Severity::Error, host: None, message: "no manifest".into(), hint: "look".into() };
    session.set_published(file(spec), documents.map(Arc::from).ok_or(missing)).await;
    let inputs = session.create_inputs(probed).await.unwrap();
    let mut found = crate::base::findings::Findings::default();
    crate::model::capability::Capability::findings(&super::Calico, &inputs, &mut found);
    found.0
}

#[tokio::test]
async fn a_missing_manifest_is_an_error_only_for_commands_that_install_it() {
    let spec = spec("");
    let found = findings(&spec, &testing::fresh(&spec), None).await;
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(
        found[0].message == "no manifest"
            && found[0].hint.starts_with("look; or ")
            && found[0].hint.contains("flannel")
    );
    let directory = tempfile::tempdir().unwrap();
    let session = testing::session(spec.clone(), directory.path());
    session.set_published(file(&spec), Err(found[0].clone())).await;
    let fresh = testing::fresh(&spec);
    let inputs = session.inputs_for(Command::Leave, &fresh).await.unwrap();
    let mut other = crate::base::findings::Findings::default();
    crate::model::capability::Capability::findings(&super::Calico, &inputs, &mut other);
    assert!(other.0.is_empty(), "{:?}", other.0);
    assert!(session.manifest(&[Arch::Amd64].into()).await.is_err(), "a bundle would lack it");
}

/// It takes the manifest from the store, and does not report that it is missing.
#[tokio::test]
async fn a_command_that_only_looks_downloads_no_manifest() {
    let directory = tempfile::tempdir().unwrap();
    let text = small().iter().map(ToString::to_string).collect::<Vec<_>>().join("\n---\n");
    let (sum, catalogue) = (kk_util::sha256(text.as_bytes()), directory.path().join("own.yaml"));
    fs::write(&catalogue, format!("calico:\n  calico.yaml: {{3.99.0: {sum}}}\n")).unwrap();
    let mut spec = spec("");
    spec.components.calico = Some("3.99.0".into());
    spec.download.catalogue = Some(catalogue.display().to_string());
    spec.download.mirror = Some("http://127.0.0.1:9".into());
    let options = Options { only_looks: true, ..Options::default() };
    let session = testing::session_with(spec.clone(), directory.path(), options);
    let fresh = testing::fresh(&spec);
    let has_it = async || {
        let inputs = session.create_inputs(&fresh).await.unwrap();
        assert_eq!(inputs.published.problems().count(), 0);
        inputs.requirements.manifests.iter().any(|manifest| manifest.name == "calico")
    };
    assert!(!has_it().await);
    let blob = session.create_inputs(&fresh).await.unwrap().store.blob(&sum);
    fs::create_dir_all(blob.parent().unwrap()).unwrap();
    fs::write(blob, text).unwrap();
    assert!(has_it().await);
}

#[tokio::test]
async fn a_kernel_without_ipip_is_refused_where_it_is_used() {
    for (network, refused) in [("", true), (", calico: {vxlanMode: Always}", false)] {
        let spec = spec(network);
        let mut probed = testing::fresh(&spec);
        probed.facts.get_mut("b").unwrap().features.remove("ipip");
        let found = findings(&spec, &probed, Some(small())).await;
        assert_eq!(found.len(), usize::from(refused), "{found:?}");
        assert!(
            found
                .iter()
                .all(|one| one.host.as_deref() == Some("b") && one.hint.contains("vxlanMode: Always"))
        );
    }
}

#[tokio::test]
async fn a_cluster_with_flannel_is_refused() {
    let spec = spec("");
    let mut probed = testing::fresh(&spec);
    let note = "/etc/kubernetes/kubekey/flannel.yaml".to_owned();
    probed.facts.get_mut("a").unwrap().files.insert(note, FileFact::default());
    let found = findings(&spec, &probed, Some(small())).await;
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!(found[0].message, "the network plugin of the cluster is flannel, but the file sets calico");
}

#[tokio::test]
async fn settings_that_an_existing_pool_does_not_have_are_refused_with_the_command_that_changes_it() {
    let pool = |name: &str, spec: Value| json!({"metadata": {"name": name}, "spec": spec});
    let there = json!({"items": [
        pool("default-ipv4-ippool", json!({"blockSize": 26, "ipipMode": "Always", "vxlanMode": "Never", "natOutgoing": true})),
        pool("own", json!({"blockSize": 28, "ipipMode": "Never"})),
    ]});
    for (network, message, hint) in [
        ("", None, ""),
        (", calico: {blockSize: 26}", None, ""),
        (", calico: {defaultIPPOOL: false, vxlanMode: Always}", None, ""),
        (", calico: {blockSize: 24}", Some("has blocks of /26, but the file sets /24"), "blockSize"),
        (
            ", calico: {ipipMode: CrossSubnet, ipv4NatOutgoing: false}",
            Some(
                "has ipipMode Always, natOutgoing true, but the file sets ipipMode CrossSubnet, ipv4NatOutgoing false",
            ),
            r#"kubectl patch ippools.crd.projectcalico.org default-ipv4-ippool --type merge -p '{"spec":{"ipipMode":"CrossSubnet","natOutgoing":false}}'"#,
        ),
    ] {
        let spec = spec(network);
        let mut probed = testing::fresh(&spec);
        probed.facts.get_mut("a").unwrap().reply(&POOLS, there.to_string());
        let found = findings(&spec, &probed, Some(small())).await;
        assert_eq!(found.len(), usize::from(message.is_some()), "{network}: {found:?}");
        if let Some(message) = message {
            assert!(found[0].message.contains(message) && found[0].hint.contains(hint), "{found:?}");
        }
    }
}

/// The answer of a control plane whose kubectl behaves like this.
fn asked(admin: bool, kubectl: &str) -> (bool, String) {
    let directory = tempfile::tempdir().unwrap();
    let config = directory.path().join("admin.conf");
    if admin {
        fs::write(&config, "").unwrap();
    }
    testing::program(directory.path(), "kubectl", kubectl);
    let text = include_str!("pools.sh").replace("/etc/kubernetes/admin.conf", config.to_str().unwrap());
    let output = testing::run_script(directory.path(), &format!("server=https://192.0.2.1:6443\n{text}"));
    (output.status.success(), String::from_utf8(output.stdout).unwrap())
}

#[test]
fn an_api_without_pools_differs_from_an_api_that_does_not_answer() {
    let not_found =
        "echo 'Error from server (NotFound): the server could not find the requested resource' >&2; exit 1";
    for (admin, kubectl, expected) in [
        (false, "exit 9", (true, "")),
        (true, "echo '{\"items\": []}'", (true, "{\"items\": []}\n")),
        (true, not_found, (true, "")),
        (true, "echo 'connection refused' >&2; exit 1", (false, "")),
    ] {
        assert_eq!(asked(admin, kubectl), (expected.0, expected.1.to_owned()), "{kubectl}");
    }
}

/// The tasks of the network on a running cluster in which one node lacks a file of calico.
async fn restarted(lost: &str) -> Vec<String> {
    let spec = spec("");
    let directory = tempfile::tempdir().unwrap();
    let session = session(&spec, directory.path(), small()).await;
    let mut probed = testing::fresh(&spec);
    let nodes =
        ["a", "b"].map(|name| format!("Node\t{name}\tTrue\t{KUBERNETES}\t\t\t\t\t\t10.9.0.0/24 \n")).concat();
    for (name, facts) in &mut probed.facts {
        facts.reply(&INITIALISED, "yes");
        facts.reply(&API, format!("{nodes}DaemonSet\tkube-system/calico-node\t2\t2\nend\n"));
        facts.reply(&SERVICES, "dns\tok\napi\tok\n");
        let joined = ["/etc/kubernetes/kubelet.conf", "/etc/kubernetes/pki/ca.crt"];
        for path in joined.iter().chain(AGENT.writes).filter(|path| name != "b" || **path != lost) {
            facts.files.insert((*path).into(), FileFact { sha256: "same".into(), ..FileFact::default() });
        }
    }
    let inputs = session.create_inputs(&probed).await.unwrap();
    let plan = Plan::new(create_cluster::pipeline(&inputs).unwrap(), &probed.facts).unwrap();
    plan.changes().into_iter().filter(|task| task.module == "network").map(|task| task.task).collect()
}

#[tokio::test]
async fn calico_restarts_where_its_files_are_gone() {
    assert_eq!(restarted("").await, [""; 0]);
    for lost in AGENT.writes {
        assert_eq!(restarted(lost).await, ["prepare_nodes", "restart_calico", "restart_kubelets"]);
    }
}

/// The directory with the published files. Without it the test does not run.
fn upstream(test: &str) -> Option<PathBuf> {
    let directory = std::env::var_os(UPSTREAM).filter(|value| !value.is_empty()).map(PathBuf::from);
    if directory.is_none() {
        println!("{test}: not run: {UPSTREAM} does not name the directory with calico's files");
    }
    directory
}

fn published(directory: &Path, version: &str, spec: &Spec) -> Vec<Value> {
    let name = file(spec).name.replace(".yaml", &format!("-v{version}.yaml"));
    let content = fs::read(directory.join(name)).unwrap();
    file(spec).read(version, &content).unwrap().to_vec()
}

#[tokio::test]
async fn published_files_differ_little_after_the_changes() {
    let Some(directory) = upstream("published_files_differ_little_after_the_changes") else { return };
    let mut shown = String::new();
    for (name, network) in CASES {
        let spec = spec(network);
        for version in VERSIONS {
            let before = published(&directory, version, &spec);
            let lines = changes(&before, &applied(&spec, before.clone()).await.unwrap());
            assert!(lines.len() < 60, "{name} {version}: {lines:#?}");
            if version == VERSIONS[1] {
                let _ = write!(shown, "# {name}\n{}\n\n", lines.join("\n"));
            }
        }
    }
    insta::assert_snapshot!(shown);
}

/// The definitions are applied first; then the API checks every object.
#[tokio::test]
async fn an_api_accepts_all_objects_of_the_published_files() {
    let Some(directory) = upstream("an_api_accepts_all_objects_of_the_published_files") else { return };
    // As kubeadm does: the agents of networks are privileged.
    let plane = ControlPlane::start_with(&["--allow-privileged=true".to_owned()]);
    let files = tempfile::tempdir().unwrap();
    let apply = |objects: Vec<&Value>, flags: &str| {
        let path = files.path().join("list.yaml");
        fs::write(&path, json!({"apiVersion": "v1", "kind": "List", "items": objects}).to_string()).unwrap();
        plane.kubectl(&format!(
            "apply --server-side --force-conflicts --field-manager=kk {flags} -f {}",
            path.display()
        ))
    };
    for version in VERSIONS {
        for (name, network) in CASES {
            let spec = spec(network);
            let objects = applied(&spec, published(&directory, version, &spec)).await.unwrap();
            let is_definition = |object: &&Value| object["kind"] == "CustomResourceDefinition";
            if name == CASES[0].0 {
                apply(objects.iter().filter(is_definition).collect(), "");
            }
            let said = apply(objects.iter().collect(), "--dry-run=server --validate=strict");
            assert_eq!(said.lines().count(), objects.len(), "{name} {version}: {said}");
        }
    }
}
