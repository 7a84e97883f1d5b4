//! Files that load: all of KubeKey's fields, the defaults, and the shipped samples.

use kk_config::{KubeVersion, Loaded, Overrides, Spec, load, schema};
use serde_json::{Map, Value};
use std::net::Ipv4Addr;
use std::path::Path;

const FULL: &str = include_str!("../kubekey-full.yaml");
const MINIMAL: &str = "
kind: Cluster
metadata: {name: minimal}
spec:
  hosts: [{name: node1, address: 10.0.0.1}]
  roleGroups: {etcd: [node1], control-plane: [node1]}
";

fn loaded(text: &str) -> Loaded {
    load("file.yaml", text, &Overrides::default()).unwrap_or_else(|errors| panic!("{errors}"))
}

#[test]
fn a_file_with_every_field_loads_as_it_is() {
    let loaded = loaded(FULL);
    insta::assert_debug_snapshot!("full", loaded.spec);
    let warnings: Vec<String> = loaded.warnings.iter().map(kk_config::Diagnostic::render).collect();
    insta::assert_snapshot!("full-warnings", warnings.join("\n\n"));
}

#[test]
fn the_full_file_has_every_field_of_the_schema() {
    let document: Value = serde_saphyr::from_str(FULL.split_once("\n---\n").unwrap().0).unwrap();
    let schema = schema();
    let mut missing = Vec::new();
    collect_missing(&schema, &schema, &[&document], "", &mut missing);
    assert_eq!(missing, Vec::<String>::new());
}

/// Walks through the schema with all values at this path of the document.
fn collect_missing(root: &Value, schema: &Value, values: &[&Value], path: &str, missing: &mut Vec<String>) {
    if let Some(reference) = schema["$ref"].as_str() {
        let target = root.pointer(reference.trim_start_matches('#')).expect("a definition");
        collect_missing(root, target, values, path, missing);
    }
    for alternative in schema["anyOf"].as_array().into_iter().flatten() {
        collect_missing(root, alternative, values, path, missing);
    }
    for (name, inner) in schema["properties"].as_object().into_iter().flatten() {
        let path = format!("{path}.{name}");
        let values: Vec<&Value> = values.iter().filter_map(|value| value.get(name)).collect();
        if values.is_empty() {
            missing.push(path.clone());
        }
        collect_missing(root, inner, &values, &path, missing);
    }
    if schema["items"].is_object() {
        let items: Vec<&Value> = values.iter().filter_map(|value| value.as_array()).flatten().collect();
        collect_missing(root, &schema["items"], &items, path, missing);
    }
    if schema["additionalProperties"].is_object() {
        let inner: Vec<&Value> =
            values.iter().filter_map(|value| value.as_object()).flat_map(Map::values).collect();
        collect_missing(root, &schema["additionalProperties"], &inner, path, missing);
    }
}

#[test]
fn absent_fields_take_their_defaults() {
    insta::assert_debug_snapshot!("defaults", loaded(MINIMAL).spec);
}

#[test]
fn empty_and_null_fields_take_their_defaults_too() {
    let text = format!(
        "{MINIMAL}  controlPlaneEndpoint: {{internalLoadbalancer: '', domain: '', address: \"\"}}
  kubernetes: {{version: '', clusterName: ~, maxPods: null, featureGates: }}
  etcd:
  network: {{plugin: ''}}
  registry: {{type: '', privateRegistry: '', auths: {{}}}}
  addons: []
"
    );
    assert_eq!(loaded(&text).spec, loaded(MINIMAL).spec);
    assert_eq!(loaded(&text).warnings, []);
}

#[test]
fn both_names_of_the_control_plane_group_work() {
    let text = "
kind: Cluster
metadata: {name: test}
spec:
  hosts: [{name: node01, address: 10.0.0.1}, {name: node02, address: 10.0.0.2}, {name: node03, address: 10.0.0.3}]
  roleGroups: {etcd: ['node[1,3]'], master: [node03], control-plane: ['node[01:02]', node02], worker: []}
  controlPlaneEndpoint: {internalLoadbalancer: haproxy}
"
    .replace("node[1,3]", "node[01,03]");
    let spec = loaded(&text).spec;
    let names = |hosts: Vec<&kk_config::Host>| {
        hosts.iter().map(|host| host.name.clone()).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(names(spec.control_planes()), "node01 node02 node03");
    assert_eq!(names(spec.etcd_hosts()), "node01 node03");
    assert_eq!(names(spec.nodes()), "node01 node02 node03");
}

#[test]
fn fields_of_earlier_versions_keep_their_meaning() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/mistakes");
    let spec = |name: &str| loaded(&std::fs::read_to_string(directory.join(name)).unwrap()).spec;
    let Spec { etcd, registry, system, .. } = spec("earlier-fields.yaml");
    assert_eq!(
        (etcd.backup_dir.as_str(), etcd.backup_period, etcd.keep_backup_number),
        ("/srv/backups", 30, 7)
    );
    assert_eq!(etcd.backup_script, "/usr/local/bin/scripts");
    assert_eq!(registry.containerd_data_dir, "/srv/containerd");
    assert!(registry.auths["hub.example:5000"].plain_http);
    assert_eq!(system.pre_install[0].bash.as_deref(), Some("true"));
    assert_eq!(spec("earlier-fields-twice.yaml").etcd.backup_dir, "/srv/backups");
    let first = spec("first-version.yaml");
    assert_eq!((first.kubernetes.dns_domain.as_str(), first.hosts[0].port), ("orchard.local", 22));
    assert_eq!(first.nodes().len(), 2);
}

#[test]
fn a_key_for_anchors_is_data_where_the_user_chooses_the_keys() {
    let text = MINIMAL.replace("address: 10.0.0.1", "address: 10.0.0.1, labels: {x-rack: '7'}");
    assert_eq!(loaded(&text).spec.hosts[0].labels["x-rack"], "7");
}

#[test]
fn the_first_control_plane_is_the_first_of_its_group() {
    let text = MINIMAL
        .replace("[{name: node1", "[{name: node0, address: 10.0.0.9}, {name: node1")
        .replace("control-plane: [node1]", "control-plane: [node1, node0]")
        + "  controlPlaneEndpoint: {internalLoadbalancer: haproxy}\n";
    let spec = loaded(&text).spec;
    assert_eq!(spec.first_control_plane().name, "node1");
    assert_eq!(spec.control_plane_endpoint.address, Some(Ipv4Addr::LOCALHOST));
}

#[test]
fn an_all_in_one_needs_no_file() {
    let version: KubeVersion = "v1.37.1".parse().unwrap();
    let spec = Spec::all_in_one("box", Ipv4Addr::new(10, 0, 0, 1), version).unwrap();
    let host = spec.first_control_plane();
    assert!(host.local && host.roles.len() == 3 && spec.kubernetes.version == version);
    let error = Spec::all_in_one("Box", Ipv4Addr::new(10, 233, 0, 1), version).unwrap_err().to_string();
    assert!(
        error.contains("hostnamectl set-hostname box") && error.contains("contains the address 10.233.0.1"),
        "{error}"
    );
}

#[test]
fn every_shipped_sample_loads_without_warnings() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../config-samples");
    let mut samples = 0;
    for entry in std::fs::read_dir(directory).unwrap() {
        let text = std::fs::read_to_string(entry.unwrap().path()).unwrap();
        assert_eq!(loaded(&text).warnings, []);
        samples += 1;
    }
    assert!(samples >= 4, "only {samples} samples were found");
}

#[test]
fn the_schema_explains_fields_and_defaults_to_editors() {
    let schema = schema();
    assert!(schema["$schema"].as_str().is_some_and(|url| url.contains("2020-12")));
    let kubernetes = &schema["$defs"]["Kubernetes"]["properties"];
    assert_eq!(kubernetes["version"]["default"], kk_config::DEFAULT_KUBERNETES_VERSION);
    assert_eq!(kubernetes["proxyMode"]["default"], "iptables");
    assert_eq!(schema["$defs"]["Network"]["properties"]["plugin"]["default"], "flannel");
    assert!(kubernetes["maxPods"]["description"].as_str().is_some_and(|text| text.contains("Pods per node")));
    assert_eq!(schema["$defs"]["Host"]["additionalProperties"], false);
}

#[test]
fn kubesphere_is_asked_for_by_the_second_document_the_field_or_the_flag() {
    let document = "---\nkind: ClusterConfiguration\nmetadata: {name: ks-installer, labels: {version: v3.4.1}}\nspec: {console: {port: 1}}\n";
    let field = |text: &str| MINIMAL.trim_end().to_owned() + "\n  kubesphere: " + text + "\n";
    let asked = |text: &str, flag: Option<&str>| {
        let overrides = Overrides { kubesphere_version: flag.map(str::to_owned), ..Overrides::default() };
        let spec = load("file.yaml", text, &overrides).unwrap_or_else(|errors| panic!("{errors}")).spec;
        spec.kubesphere
            .map(|it| (it.version.unwrap_or_default(), Value::Object(it.configuration).to_string()))
    };
    let said = |version: &str, configuration: &str| Some((version.to_owned(), configuration.to_owned()));
    let with_document = MINIMAL.to_owned() + document;
    // An old key gets its current name.
    let renamed = r#"{"common":{"core":{"console":{"port":1}}}}"#;
    assert_eq!(asked(MINIMAL, None), None);
    assert_eq!(asked(&with_document, None), None, "a file of KubeKey names no image: a warning");
    assert_eq!(asked(&(field("{image: 'hub.example.com/ks:1'}") + document), None), said("v3.4.1", renamed));
    assert_eq!(asked(&with_document, Some("4.1.3")), said("v4.1.3", renamed));
    assert_eq!(asked(MINIMAL, Some("")), said("", "{}"));
    assert_eq!(asked(&field("{enabled: true, version: v3.4.0}"), None), said("v3.4.0", "{}"));
    // Then the content of the document does not matter.
    for document in [document.to_owned(), document.replace("{console: {port: 1}}", "[]")] {
        assert_eq!(asked(&(field("{enabled: false}") + &document), None), None);
    }
    assert_eq!(asked(&(field("{enabled: false}") + document), Some("")), said("v3.4.1", renamed));
}

/// As KubeKey's files have it: the settings of a plugin that kk installs cause no warning.
#[test]
fn calico_has_the_settings_of_the_file() {
    let text = format!(
        "{MINIMAL}  network:\n    plugin: calico\n    calico: {{ipipMode: Never, vxlanMode: CrossSubnet, vethMTU: 1440, \
         ipv4NatOutgoing: false, ipv6NatOutgoing: true, defaultIPPOOL: true, blockSize: 24, \
         ipAutoDetectionMethod: interface=eth.*, typha: {{enabled: true, replicas: 2, nodeSelector: {{a: b}}}}, \
         controller: {{nodeSelector: {{c: d}}}}}}\n"
    );
    let loaded = loaded(&text);
    assert_eq!(loaded.warnings, []);
    insta::assert_debug_snapshot!("calico", loaded.spec.network);
}
