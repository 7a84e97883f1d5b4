//! Hooks that answer the API server: the requests that they get, how it finds them, and their certificates.

mod certificates;
mod registration;
mod requests;

use crate::cluster::control_plane::{free_port, shared};
use crate::cluster::operator::{Operator, Setup};

/// Flags of an operator outside the cluster that has `namespace` for itself, and the port of its admission server.
fn setup(namespace: &str) -> (Setup, u16) {
    setup_with_configuration(namespace, namespace)
}

fn setup_with_configuration(namespace: &str, configuration: &str) -> (Setup, u16) {
    let plane = shared();
    plane.kubectl(&format!("create ns {namespace}"));
    let port = free_port();
    let setup = Setup::new(plane)
        .flag(&format!("--namespace={namespace}"))
        .flag("--webhook-external-host=127.0.0.1")
        .flag(&format!("--validating-webhook-configuration-name={configuration}"))
        .flag("--validating-webhook-listen-address=127.0.0.1")
        .flag("--conversion-webhook-listen-address=127.0.0.1")
        .flag(&format!("--validating-webhook-listen-port={port}"))
        .flag(&format!("--conversion-webhook-listen-port={}", free_port()));
    (setup, port)
}

fn wait_for_log(operator: &Operator, text: &str) {
    operator.wait_for(text, |operator| operator.log().contains(text));
}

/// A hook that checks `ConfigMaps` of namespaces with the label `of: namespace`.
fn checks(namespace: &str) -> String {
    format!(
        "configVersion: v1\nkubernetesValidating: [{{name: check.{namespace}.example.org, \
         namespace: {{labelSelector: {{matchLabels: {{of: {namespace}}}}}}}, \
         rules: [{{apiVersions: [v1], apiGroups: [''], resources: [configmaps], operations: [CREATE]}}]}}]"
    )
}

const ALLOW: &str = r#"echo '{"allowed":true}' > $VALIDATING_RESPONSE_PATH"#;
