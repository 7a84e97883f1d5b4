use std::fs;

use tempfile::TempDir;

use super::*;

const PART: &str = "enabled: spec.a.enabled\nsources: [{manifests: manifests/a}]\n";

fn payload(files: &[(&str, &str)]) -> TempDir {
    let dir = TempDir::new().unwrap();
    for (path, text) in files {
        let path = dir.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    dir
}

fn with(definition: &str) -> TempDir {
    payload(&[("components/a.yaml", definition), ("manifests/a/map.yaml", "kind: ConfigMap\n")])
}

#[test]
fn a_payload_is_read_back_as_it_was_built() {
    let dir = with(PART);
    let built = build(dir.path(), "1", "v3.4.1").unwrap();
    assert_eq!((built.version(), built.kubesphere()), ("1", "v3.4.1"));
    let read = Payload::open(dir.path()).unwrap();
    assert_eq!(read.parts("manifests"), ["manifests/a/map.yaml"]);
    assert_eq!(read.text("manifests/a/map.yaml").unwrap(), "kind: ConfigMap\n");
}

#[test]
fn a_payload_that_is_not_what_the_index_says_is_refused() {
    for (case, file, text, expected) in [
        ("changed", "manifests/a/map.yaml", Some("kind: Secret\n"), "SHA-256"),
        ("gone", "manifests/a/map.yaml", None, "missing"),
        ("more", "manifests/a/more.yaml", Some("x"), "not listed"),
    ] {
        println!("case {case}");
        let dir = with(PART);
        build(dir.path(), "1", "v3.4.1").unwrap();
        match text {
            Some(text) => fs::write(dir.path().join(file), text).unwrap(),
            None => fs::remove_file(dir.path().join(file)).unwrap(),
        }
        let error = Payload::open(dir.path()).unwrap_err().to_string();
        assert!(error.contains(file) && error.contains(expected), "{case}: {error}");
    }
}

#[test]
fn a_part_that_changes_after_the_start_is_not_used() {
    let dir = with(PART);
    let built = build(dir.path(), "1", "v3.4.1").unwrap();
    fs::write(dir.path().join("manifests/a/map.yaml"), "kind: Secret\n").unwrap();
    assert!(matches!(built.text("manifests/a/map.yaml"), Err(PayloadError::Sum { .. })));
    assert!(matches!(built.chart("manifests/a"), Err(PayloadError::Sum { .. })));
}

#[test]
fn a_definition_that_is_wrong_is_named() {
    for (case, definition, expected) in [
        ("unknown_key", "enabled: 'true'\nsources: []\nimage: x\n", "image"),
        ("no_expression", "enabled: 'spec.a ='\nsources: []\n", "spec.a ="),
        ("needed_and", "enabled: when needed and spec.a\nsources: []\n", "when needed and spec.a"),
        ("no_component_before", "enabled: 'true'\nafter: [b]\nsources: []\n", "'b'"),
        ("no_kinds_before", "enabled: 'true'\nkindsOf: [b]\nsources: []\n", "'b'"),
        ("circle_with_after", "enabled: 'true'\nafter: [a]\nsources: []\n", "depends on itself"),
        (
            "value_of_nobody",
            "enabled: 'true'\ngenerated: [{name: x, of: b}]\nsources: []\n",
            "takes 'x' of 'b'",
        ),
        ("no_component", "enabled: 'true'\ndependsOn: [b]\nsources: []\n", "'b'"),
        ("circle", "enabled: 'true'\ndependsOn: [a]\nsources: []\n", "depends on itself"),
        (
            "hooks_in_a_record",
            "enabled: 'true'\nsources: [{chart: manifests/a, release: a, record: true, hooks: [Job]}]\n",
            "cannot have `hooks`",
        ),
        ("no_files", "enabled: 'true'\nsources: [{chart: charts/a, release: a}]\n", "charts/a"),
    ] {
        println!("case {case}");
        let dir = with(definition);
        let error = build(dir.path(), "1", "v3.4.1").unwrap_err().to_string();
        assert!(error.contains("components/a.yaml") && error.contains(expected), "{case}: {error}");
    }
}

#[test]
fn what_is_not_there_counts_as_no() {
    for (text, expected) in [
        ("spec.a.b.enabled", false),
        ("spec.x.enabled", true),
        ("spec.x.kind == 'host' or spec.none", true),
        ("not spec.x.enabled", false),
        ("when needed", false),
        ("when needed or spec.x.enabled", true),
    ] {
        println!("case {text}");
        let expression: Expression = serde_json::from_value(text.into()).unwrap();
        let spec = serde_json::json!({"spec": {"x": {"enabled": true, "kind": "host"}}});
        assert_eq!(expression.holds(&Value::from_serialize(&spec)).unwrap(), expected, "{text}");
    }
}

use minijinja::Value;

/// The built-in definitions for a release, by name.
fn definitions(release: &str) -> BTreeMap<String, Component> {
    let directory =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("definitions").join(release).join("components");
    let read = |entry: fs::DirEntry| {
        let name = entry.file_name().into_string().unwrap().replace(".yaml", "");
        let component = Component::parse(&name, &fs::read_to_string(entry.path()).unwrap());
        (name.clone(), component.unwrap_or_else(|why| panic!("{name}: {why}")))
    };
    fs::read_dir(directory).unwrap().map(|entry| read(entry.unwrap())).collect()
}

/// Some operators, such as prometheus-operator and fluentbit-operator, do not report in their custom resources whether pods run.
#[test]
fn a_component_waits_for_what_its_controllers_make() {
    let expected = [
        ("alerting", vec!["StatefulSet thanos-ruler-kubesphere"]),
        ("auditing", vec!["DaemonSet fluent-bit", "Deployment kube-auditing-webhook-deploy"]),
        (
            "events",
            vec!["DaemonSet fluent-bit", "Deployment ks-events-exporter", "Deployment ks-events-ruler"],
        ),
        ("logging", vec!["DaemonSet fluent-bit"]),
        ("monitoring", vec!["StatefulSet prometheus-k8s", "StatefulSet alertmanager-main"]),
        ("notification", vec!["Deployment notification-manager-deployment"]),
    ];
    // Charts and manifests of these components contain all their workloads.
    let others = [
        "argocd",
        "core",
        "devops",
        "edgeruntime",
        "elasticsearch",
        "fluentbit-operator",
        "gatekeeper",
        "logging-system",
        "metrics-server",
        "minio",
        "multicluster",
        "namespaces",
        "openldap",
        "openpitrix",
        "opensearch",
        "prometheus-operator",
        "redis",
        "servicemesh",
        "topology",
    ];
    let expected: BTreeMap<&str, Vec<&str>> =
        expected.into_iter().chain(others.into_iter().map(|name| (name, Vec::new()))).collect();
    let definitions = definitions("v3.4.1");
    let found: BTreeMap<&str, Vec<String>> = definitions
        .iter()
        .map(|(name, component)| {
            let waits = component.waits_for.iter().map(|one| format!("{} {}", one.kind, one.name));
            (name.as_str(), waits.collect())
        })
        .collect();
    let expected: BTreeMap<&str, Vec<String>> = expected
        .into_iter()
        .map(|(name, waits)| (name, waits.into_iter().map(str::to_owned).collect()))
        .collect();
    assert_eq!(found, expected);
}

#[test]
fn a_core_takes_along_what_its_controllers_leave() {
    for release in ["v3.4.1", "v4.1.3"] {
        let definitions = definitions(release);
        let traces = &definitions["core"].remove.traces;
        let of = |kind: &str| traces.iter().find(|trace| trace.kind == kind).unwrap();
        assert_eq!(of("Namespace").domain.as_deref(), Some("kubesphere.io"));
        for kind in ["Role", "RoleBinding"] {
            assert!(!of(kind).deleted_with.is_empty() && of(kind).domain.is_none());
        }
    }
}

#[test]
fn the_core_of_version_4_takes_along_the_permissions_that_installed_extensions() {
    let definitions = definitions("v4.1.3");
    let traces = &definitions["core"].remove.traces;
    for kind in ["ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding", "ServiceAccount"] {
        let trace = traces.iter().find(|trace| trace.kind == kind).unwrap();
        assert!(trace.deleted_with.iter().any(|key| key == "kubesphere.io/extension-ref"), "{kind}");
    }
}
