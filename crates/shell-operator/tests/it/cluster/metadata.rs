//! A binding that needs only the metadata of objects is sent nothing else.

use crate::cluster::control_plane::{ControlPlane, shared};
use crate::cluster::operator::Setup;

const CRD: &str = r"
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: larges.metadata.example.org}
spec:
  group: metadata.example.org
  scope: Namespaced
  names: {kind: Large, plural: larges, singular: large}
  versions:
  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}
";

const CONFIG: &str = "configVersion: v1\nkubernetes:\n- {name: larges, apiVersion: metadata.example.org/v1, kind: Large, \
                      jqFilter: '{l: .metadata.labels.l, n: .metadata.name}', keepFullObjectsInMemory: false}";

/// Bytes of all lists of the kind, as the API server counts them.
fn listed_bytes(plane: &ControlPlane) -> f64 {
    let text = plane.kubectl("get --raw /metrics");
    let sizes = text.lines().filter(|line| {
        line.starts_with("apiserver_response_sizes_sum{")
            && line.contains(r#"resource="larges""#)
            && line.contains(r#"verb="LIST""#)
    });
    sizes.map(|line| line.rsplit(' ').next().unwrap().parse::<f64>().unwrap()).sum()
}

#[test]
fn only_metadata_is_sent_when_only_metadata_is_read() {
    let plane = shared();
    plane.apply(CRD);
    plane.kubectl("wait --for condition=Established crd/larges.metadata.example.org");
    plane.kubectl("create ns metadata");
    let apply = |label: &str, spec: &str| {
        let object = format!(
            "{{apiVersion: metadata.example.org/v1, kind: Large, metadata: {{name: a, namespace: metadata, labels: {{l: '{label}'}}}}, spec: {{text: '{spec}'}}}}"
        );
        // Otherwise kubectl keeps all of it in an annotation, which is metadata.
        plane.kubectl(&format!("apply --server-side -f - <<< \"{object}\""));
    };
    apply("1", &"x".repeat(100_000));
    let operator = Setup::new(plane).hook("h", CONFIG, "keep").start();
    operator.wait_ready();
    let bytes = listed_bytes(plane);
    assert!((100.0..10_000.0).contains(&bytes), "{bytes} bytes");
    apply("1", "y");
    apply("2", "y");
    plane.kubectl("-n metadata delete larges.metadata.example.org a");
    operator.wait_for("the end of the object", |operator| operator.all_contexts("h").len() >= 3);
    let contexts = operator.all_contexts("h");
    let results = |context: &serde_json::Value| context["filterResult"].to_string();
    assert_eq!(contexts[0]["objects"].to_string(), r#"[{"filterResult":{"l":"1","n":"a"}}]"#);
    assert_eq!(contexts[1]["watchEvent"], "Modified");
    assert_eq!(results(&contexts[1]), r#"{"l":"2","n":"a"}"#);
    assert_eq!(contexts[2]["watchEvent"], "Deleted");
    assert_eq!(contexts.len(), 3, "{contexts:?}");
}
