//! The hooks of `deploy/hooks`, without a cluster; `make e2e ONLY=shell-operator` runs them in one.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::process::Command;

use serde_json::{Value, json};

const HOOKS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../deploy/hooks");

fn command(program: &str) -> Command {
    let mut command = Command::new(program);
    command.env("FRAMEWORK_DIR", concat!(env!("CARGO_MANIFEST_DIR"), "/shell"));
    command.env("SHELL_OPERATOR_NAMESPACE", "operators");
    command
}

/// Runs a hook with one context and returns the JSON documents that it wrote into the file of this variable.
fn answer(hook: &str, context: &Value, variable: &str) -> Vec<Value> {
    let dir = tempfile::tempdir().unwrap();
    let (contexts, written) = (dir.path().join("contexts"), dir.path().join("written"));
    std::fs::write(&contexts, json!([context]).to_string()).unwrap();
    let mut command = command(&format!("{HOOKS}/{hook}"));
    let output = command.env("BINDING_CONTEXT_PATH", contexts).env(variable, &written).output().unwrap();
    assert!(output.status.success(), "{hook}: {}", String::from_utf8_lossy(&output.stderr));
    let text = std::fs::read(written).unwrap_or_default();
    serde_json::Deserializer::from_slice(&text).into_iter().map(Result::unwrap).collect()
}

fn patches(hook: &str, snapshots: &Value) -> Vec<Value> {
    let group = match hook {
        "secrets.sh" => "copies",
        "checksum.py" => "checksum",
        _ => "users",
    };
    let context = json!({"binding": "any", "type": "Group", "groupName": group, "snapshots": snapshots});
    answer(hook, &context, "KUBERNETES_PATCH_PATH")
}

#[test]
fn all_are_valid() {
    let output = command(env!("CARGO_BIN_EXE_shell-operator")).args(["validate", HOOKS]).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(said.contains("7 hooks are fine"), "{said}");
}

#[test]
fn users_become_lines() {
    let user = |name: &str, hash: &str| json!({"filterResult": {"name": name, "hash": hash}});
    let patches = patches("users.sh", &json!({"users": [user("ada", "$2y$1"), user("bob", "$2y$2")]}));
    assert_eq!(patches[0]["object"]["metadata"], json!({"name": "htpasswd", "namespace": "operators"}));
    assert_eq!(patches[0]["object"]["stringData"]["htpasswd"], "ada:$2y$1\nbob:$2y$2\n");
}

#[test]
fn copies_are_made_mended_and_removed_and_namespaces_that_end_are_left_alone() {
    let source = json!({"name": "s", "type": "Opaque", "data": {"a": "MQ=="}});
    let copy = |namespace: &str, value: &str| json!({"filterResult": {"namespace": namespace, "name": "s", "type": "Opaque", "data": {"a": value}}});
    let target = |name: &str, ends: bool| json!({"filterResult": {"name": name, "ends": ends}});
    let snapshots = json!({
        "sources": [{"filterResult": source}],
        "targets": [target("new", false), target("wrong", false), target("right", false), target("ends", true)],
        "copies": [copy("wrong", "Mg=="), copy("right", "MQ=="), copy("left", "MQ==")],
    });
    let done: Vec<String> = patches("secrets.sh", &snapshots)
        .iter()
        .map(|patch| {
            let namespace =
                patch["namespace"].as_str().or(patch["object"]["metadata"]["namespace"].as_str()).unwrap();
            format!("{} {namespace}", patch["operation"].as_str().unwrap())
        })
        .collect();
    assert_eq!(done, ["CreateIfNotExists new", "CreateOrUpdate wrong", "DeleteInBackground left"]);
}

#[test]
fn only_a_deployment_with_another_checksum_is_patched() {
    let configmap =
        json!({"namespace": "n", "name": "c", "content": {"data": {"a": "1"}, "binaryData": null}});
    let deployment = |name: &str, of: &str, checksum: &Value| json!({"filterResult": {"namespace": "n", "name": name, "of": of, "checksum": checksum}});
    let with = |deployments: Value| {
        patches(
            "checksum.py",
            &json!({"configmaps": [{"filterResult": configmap}], "deployments": deployments}),
        )
    };
    let first =
        with(json!([deployment("new", "c", &Value::Null), deployment("other", "missing", &Value::Null)]));
    assert_eq!(first.len(), 1, "{first:?}");
    assert_eq!(first[0]["name"], "new");
    let annotations = &first[0]["mergePatch"]["spec"]["template"]["metadata"]["annotations"];
    let checksum = annotations["checksum.example.com/value"].clone();
    assert_eq!(with(json!([deployment("new", "c", &checksum)])), [Value::Null; 0]);
}

#[test]
fn images_need_a_fixed_version() {
    for (case, image, allowed) in [
        ("no_tag", "nginx", false),
        ("latest", "nginx:latest", false),
        ("port_is_no_tag", "registry:5000/nginx", false),
        ("tag", "registry:5000/nginx:1.27", true),
        ("digest", "nginx@sha256:0123", true),
    ] {
        println!("case {case}");
        let object = json!({"spec": {"template": {"spec": {"containers": [{"image": image}]}}}});
        let context = json!({
            "binding": "images.policy.example.com", "type": "Validating", "review": {"request": {"object": object}}
        });
        let answer = answer("policy.sh", &context, "ADMISSION_RESPONSE_PATH");
        assert_eq!(answer[0]["allowed"], allowed, "{case}");
        assert_eq!(answer[0]["message"].as_str().unwrap_or_default().contains(image), !allowed, "{case}");
    }
}

#[test]
fn backups_are_converted() {
    for (from, to, old, new) in [
        ("v1alpha1", "v1beta1", json!({"time": "03:10"}), json!({"hour": 3, "minute": 10})),
        ("v1beta1", "v1alpha1", json!({"hour": 3, "minute": 5}), json!({"time": "03:05"})),
        ("v1beta1", "v1", json!({"hour": 3, "minute": 5}), json!({"at": {"hour": 3, "minute": 5}})),
        ("v1", "v1beta1", json!({"at": {"hour": 3, "minute": 5}}), json!({"hour": 3, "minute": 5})),
    ] {
        let backup = |version: &str, spec: &Value| json!({"apiVersion": format!("backup.example.com/{version}"), "spec": spec});
        let objects = json!([backup(from, &old), backup(to, &new)]);
        let context = json!({
            "binding": "backups", "type": "Conversion", "fromVersion": from, "toVersion": to,
            "review": {"request": {"objects": objects}}
        });
        let answer = answer("backups.py", &context, "CONVERSION_RESPONSE_PATH");
        assert_eq!(
            answer[0]["convertedObjects"],
            json!([backup(to, &new), backup(to, &new)]),
            "{from} to {to}"
        );
    }
}
