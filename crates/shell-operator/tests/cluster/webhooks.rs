//! Hooks that answer the API server.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use shell_operator::webhook::certificates::{Bundle, self_signed};

use crate::control_plane::{free_port, shared};
use crate::operator::{Operator, Setup};
use crate::proxy::{Fault, Proxy};
use crate::recorded::{fixtures, normalise};

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

/// A hook that looks at `ConfigMaps` of namespaces with the label `of: namespace`.
fn checks(namespace: &str) -> String {
    format!(
        "configVersion: v1\nkubernetesValidating: [{{name: check.{namespace}.example.org, \
         namespace: {{labelSelector: {{matchLabels: {{of: {namespace}}}}}}}, \
         rules: [{{apiVersions: [v1], apiGroups: [''], resources: [configmaps], operations: [CREATE]}}]}}]"
    )
}

const ALLOW: &str = r#"echo '{"allowed":true}' > $VALIDATING_RESPONSE_PATH"#;

/// A hook of the recording; it keeps its contexts in `out`.
fn recorded_hook(setup: Setup, name: &str) -> Setup {
    let text = fs::read_to_string(fixtures().join(format!("webhooks/hooks/{name}.sh"))).unwrap();
    let text = text.replacen('\n', &format!("\nexport REC_OUT={}\n", setup.out().display()), 1);
    setup.program(name, &text)
}

/// The contexts in a directory, each once, in order of arrival, with what differs from cluster to cluster replaced.
fn contexts(dir: &Path) -> Vec<String> {
    let mut paths: Vec<PathBuf> = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    let mut seen = BTreeSet::new();
    let texts = paths.iter().map(|path| {
        let text = normalise(&fs::read_to_string(path).unwrap());
        let user = r#""username":"admin","groups":["system:masters","#;
        let recorded = r#""username":"kubernetes-admin","groups":["kubeadm:cluster-admins","#;
        let mut text = text.replace(user, recorded);
        if let Some(at) = text.find("X509SHA256=").map(|at| at + "X509SHA256=".len()) {
            let end = at + text[at..].find('"').unwrap();
            text.replace_range(at..end, "HASH");
        }
        text
    });
    texts.filter(|text| seen.insert(text.clone())).collect()
}

#[test]
fn hooks_get_the_reviews_that_the_original_gave_them() {
    let plane = shared();
    plane.kubectl("create ns adm");
    plane.kubectl("label ns adm adm=yes");
    let crd = fs::read_to_string(fixtures().join("webhooks/setup.yaml")).unwrap();
    let crd = crd.split("---\n").find(|part| part.contains("CustomResourceDefinition")).unwrap().to_owned();
    let (setup, _) = setup("rec-op");
    let setup = recorded_hook(recorded_hook(setup, "adm"), "conv");
    let operator = setup.flag("--webhook-self-signed").start();
    wait_for_log(&operator, "there is no CustomResourceDefinition things.rec.example.org yet");
    plane.apply(&crd);
    wait_for_log(&operator, "CustomResourceDefinition things.rec.example.org is converted by hooks now");
    plane.kubectl("wait --for=condition=Established crd/things.rec.example.org");
    wait_for_log(&operator, "MutatingWebhookConfiguration rec-op-hooks is created");
    plane.kubectl("-n adm create secret generic s1");
    let works = |line: &str| operator.wait_for(line, |_| plane.try_kubectl(line).is_ok());
    works("-n adm create cm probe");
    plane.kubectl("-n adm delete cm probe");
    for file in fs::read_dir(operator.out()).unwrap() {
        fs::remove_file(file.unwrap().path()).unwrap();
    }
    let warned = plane.kubectl("-n adm create cm ok --from-literal=k=1 2>&1");
    assert!(warned.contains("Warning: looks odd"), "{warned}");
    let denied = plane.try_kubectl("-n adm create cm forbidden --from-literal=k=1").unwrap_err();
    let message = r#"admission webhook "check.rec.example.org" denied the request: no such names here"#;
    assert!(denied.contains(message) && denied.contains("Warning: w1"), "{denied}");
    plane.apply("{apiVersion: v1, kind: ConfigMap, metadata: {name: mut, namespace: adm, labels: {mutate: 'yes'}}, data: {k: '1'}}");
    assert_eq!(plane.kubectl("-n adm get cm mut -o jsonpath='{.data}'"), r#"{"added":"1","k":"1"}"#);
    plane.kubectl("-n adm delete cm ok");
    plane.apply("{apiVersion: rec.example.org/v1alpha1, kind: Thing, metadata: {name: t, namespace: adm}, spec: {trail: ''}}");
    let trail = |version: &str| {
        plane.kubectl(&format!("-n adm get things.{version}.rec.example.org t -o jsonpath='{{.spec.trail}}'"))
    };
    assert_eq!(trail("v1"), "v1alpha1>v1beta1 v1beta1>v1 ");
    assert_eq!(trail("v1alpha1"), "v1alpha1>v1beta1 v1beta1>v1 v1>v1beta1 v1beta1>v1alpha1 ");
    let mut recorded = contexts(&fixtures().join("webhooks/contexts"));
    // The binding's run at start came before the probe.
    recorded.remove(0);
    let mut now = contexts(&operator.out());
    // Controllers that look at all kinds ask whenever they like, also for the version that nobody here asks for.
    now.retain(|text| !text.contains(r#""desiredAPIVersion":"rec.example.org/v1beta1""#));
    for text in &now {
        assert!(recorded.contains(text), "nobody recorded {text}");
    }
    let mut rest = now.iter();
    for text in &recorded {
        assert!(rest.any(|now| now == text), "missing, or too early: {text}\n{now:#?}");
    }
}

/// As the roles of the original's examples allow it: to list, to create and to update, and not to get.
#[test]
fn a_configuration_is_kept_by_who_may_list_and_not_get() {
    let plane = shared();
    let proxy = Proxy::start(plane);
    proxy.disturb(
        "GET /apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/",
        Fault::Status(403),
    );
    let (setup, _) = setup("lists");
    let setup = setup.flag("--webhook-self-signed").flag(&format!("--kube-server={}", proxy.url()));
    let operator = setup.hook("check", &checks("lists"), ALLOW).start();
    wait_for_log(&operator, "ValidatingWebhookConfiguration lists-hooks is created");
    plane.kubectl(
        "patch validatingwebhookconfiguration lists-hooks --type json -p '[{\"op\": \"remove\", \"path\": \"/webhooks/0\"}]'",
    );
    wait_for_log(&operator, "ValidatingWebhookConfiguration lists-hooks is brought up to date");
    let names = "get validatingwebhookconfiguration lists-hooks -o jsonpath='{.webhooks[*].name}'";
    assert_eq!(plane.kubectl(names), "check.lists.example.org");
    assert!(proxy.requests("fieldSelector=metadata.name%3Dlists-hooks") > 0, "it was got, not listed");
}

/// A hook of the shell library: objects of the old version are read, and written, as the new one.
#[test]
fn a_definition_gets_a_new_version_by_a_conversion_in_shell() {
    let plane = shared();
    let schema = "schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}";
    plane.apply(&format!(
        "{{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {{name: jobs.conv.example.org}}, spec: {{group: conv.example.org, scope: Cluster, names: {{kind: Job, plural: jobs}}, versions: [{{name: v1, served: true, storage: true, {schema}}}, {{name: v2, served: true, storage: false, {schema}}}]}}}}"
    ));
    plane.kubectl("wait --for=condition=Established crd/jobs.conv.example.org");
    let hook = r#"#!/bin/bash
. $FRAMEWORK_DIR/shell_lib.sh
__config__() { echo '{configVersion: v1, kubernetesCustomResourceConversion: [{name: up, crdName: jobs.conv.example.org, conversions: [{fromVersion: v1, toVersion: v2}]}]}'; }
__on_conversion::up() {
  context::jq '{convertedObjects: [.review.request.objects[] | .apiVersion = "conv.example.org/v2" | .spec.when = (.spec.when | join(" "))]}' > $CONVERSION_RESPONSE_PATH
}
hook::run "$@"
"#;
    let (setup, _) = setup("conv-op");
    let framework = format!("FRAMEWORK_DIR={}/shell", env!("CARGO_MANIFEST_DIR"));
    let setup = setup.wrapper(&["env", &framework]).flag("--webhook-self-signed");
    let operator = setup.program("convert", hook).start();
    wait_for_log(&operator, "CustomResourceDefinition jobs.conv.example.org is converted by hooks now");
    plane.apply(
        "{apiVersion: conv.example.org/v1, kind: Job, metadata: {name: j}, spec: {when: ['*', '*/5']}}",
    );
    let when = "get jobs.v2.conv.example.org j -o jsonpath='{.spec.when}'";
    operator.wait_for("the new version", |_| plane.try_kubectl(when).as_deref() == Ok("* */5"));
}

#[test]
fn a_hook_that_fails_refuses_and_configurations_are_repaired() {
    let plane = shared();
    plane.kubectl("create ns drift");
    plane.kubectl("label ns drift of=drift-op");
    let (setup, _) = setup("drift-op");
    let fails = "grep -q '\"name\":\"fails\"' $BINDING_CONTEXT_PATH && { echo secret reason >&2; exit 1; }\n";
    let operator = setup
        .flag("--webhook-self-signed")
        .hook("h", &checks("drift-op"), &format!("{fails}{ALLOW}"))
        .start();
    wait_for_log(&operator, "ValidatingWebhookConfiguration drift-op-hooks is created");
    operator.wait_for("a request", |_| plane.try_kubectl("-n drift create cm fine").is_ok());
    let refused = plane.try_kubectl("-n drift create cm fails").unwrap_err();
    assert!(refused.contains("Hook failed") && !refused.contains("secret reason"), "{refused}");
    let webhooks =
        || plane.kubectl("get validatingwebhookconfiguration drift-op-hooks -o jsonpath='{.webhooks}'");
    let good = webhooks();
    plane.kubectl(
        r#"patch validatingwebhookconfiguration drift-op-hooks --type=json -p '[{"op":"replace","path":"/webhooks/0/failurePolicy","value":"Ignore"},{"op":"remove","path":"/webhooks/0/namespaceSelector/matchLabels"}]'"#,
    );
    assert_ne!(webhooks(), good);
    operator.wait_for("the repair", |_| webhooks() == good);
    plane.kubectl("delete validatingwebhookconfiguration drift-op-hooks");
    operator.wait_for("the new one", |_| {
        plane.try_kubectl("get validatingwebhookconfiguration drift-op-hooks").is_ok()
    });
    assert_eq!(webhooks(), good);
}

/// The server begins with the first hook that asks for it, and what no hook answers is not asked any more.
#[test]
fn webhooks_come_and_go_with_hooks_that_change() {
    let plane = shared();
    plane.kubectl("create ns come");
    plane.kubectl("label ns come of=come-op");
    let (setup, _) = setup("come-op");
    let operator = setup
        .flag("--webhook-self-signed")
        .flag("--hooks-reload")
        .hook("h", "configVersion: v1\nonStartup: 1", "keep")
        .start();
    operator.wait_ready();
    let denies = r#"echo '{"allowed":false,"message":"not here"}' > $VALIDATING_RESPONSE_PATH"#;
    operator.put_hook("check", &checks("come-op"), denies);
    let create = || plane.try_kubectl("-n come create cm a --dry-run=server").err().unwrap_or_default();
    operator.wait_for("the refusal", |_| create().contains("not here"));
    fs::remove_file(operator.hooks_dir().join("check")).unwrap();
    operator.wait_for("no refusal", |_| create().is_empty());
}

/// Whether a client that trusts only `ca` reaches the server; `more` are further arguments of curl.
fn reaches(port: u16, ca: &Path, more: &[&str]) -> bool {
    let url = format!("https://127.0.0.1:{port}/healthz");
    let output = Command::new("curl")
        .args(["-sf", "--max-time", "3", "--cacert"])
        .arg(ca)
        .args(more)
        .arg(url)
        .output();
    output.unwrap().status.success()
}

fn write(dir: &Path, bundle: &Bundle) {
    for (name, text) in [("ca.crt", &bundle.ca), ("tls.crt", &bundle.certificate), ("tls.key", &bundle.key)] {
        fs::write(dir.join(name), text).unwrap();
    }
}

fn bundle(hours: u64) -> Bundle {
    self_signed(&["127.0.0.1".to_owned()], Duration::from_hours(hours)).unwrap()
}

#[test]
fn certificates_are_taken_over_while_the_server_runs() {
    let dir = tempfile::tempdir().unwrap();
    let file = |name: &str| dir.path().join(name);
    let (setup, port) = setup("tls-op");
    write(dir.path(), &bundle(100));
    let operator = setup
        .flag(&format!("--validating-webhook-server-cert={}", file("tls.crt").display()))
        .flag(&format!("--validating-webhook-server-key={}", file("tls.key").display()))
        .flag(&format!("--validating-webhook-ca={}", file("ca.crt").display()))
        .hook("h", &checks("tls-op"), ALLOW)
        .start();
    operator.wait_for("the server", |_| reaches(port, &file("ca.crt"), &[]));
    fs::copy(file("ca.crt"), file("old-ca.crt")).unwrap();
    fs::write(file("tls.crt"), "nothing").unwrap();
    wait_for_log(&operator, "new certificates are not used");
    assert!(reaches(port, &file("old-ca.crt"), &[]), "the old certificate stays");
    write(dir.path(), &bundle(100));
    operator.wait_for("the new certificate", |_| reaches(port, &file("ca.crt"), &[]));
    assert!(!reaches(port, &file("old-ca.crt"), &[]));
}

#[test]
fn clients_need_a_certificate_when_a_client_authority_is_given() {
    let dir = tempfile::tempdir().unwrap();
    let file = |name: &str| dir.path().join(name);
    let client = tempfile::tempdir().unwrap();
    write(dir.path(), &bundle(100));
    write_client_certificate(client.path());
    let (setup, port) = setup("mtls-op");
    let operator = setup
        .flag(&format!("--validating-webhook-server-cert={}", file("tls.crt").display()))
        .flag(&format!("--validating-webhook-server-key={}", file("tls.key").display()))
        .flag(&format!("--validating-webhook-ca={}", file("ca.crt").display()))
        .flag(&format!("--validating-webhook-client-ca={}", client.path().join("ca.crt").display()))
        .hook("h", &checks("mtls-op"), ALLOW)
        .start();
    let (certificate, key) = (client.path().join("tls.crt"), client.path().join("tls.key"));
    let with = ["--cert", certificate.to_str().unwrap(), "--key", key.to_str().unwrap()];
    operator.wait_for("the server", |_| reaches(port, &file("ca.crt"), &with));
    assert!(!reaches(port, &file("ca.crt"), &[]));
}

fn write_client_certificate(dir: &Path) {
    use rcgen::{BasicConstraints, CertificateParams, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair};
    let ca_key = KeyPair::generate().unwrap();
    let mut ca = CertificateParams::default();
    ca.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    fs::write(dir.join("ca.crt"), ca.self_signed(&ca_key).unwrap().pem()).unwrap();
    let key = KeyPair::generate().unwrap();
    let mut client = CertificateParams::new(vec!["client".to_owned()]).unwrap();
    client.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
    fs::write(dir.join("tls.crt"), client.signed_by(&key, &Issuer::new(ca, ca_key)).unwrap().pem()).unwrap();
    fs::write(dir.join("tls.key"), key.serialize_pem()).unwrap();
}

#[test]
fn own_certificates_are_renewed_before_their_end() {
    let plane = shared();
    plane.kubectl("create ns renew");
    plane.kubectl("label ns renew of=renew-op");
    let (setup, port) = setup("renew-op");
    let operator = setup.flag("--webhook-self-signed").hook("h", &checks("renew-op"), ALLOW).start();
    let mut count = 0;
    let mut create = || {
        count += 1;
        plane.try_kubectl(&format!("-n renew create cm c{count}"))
    };
    operator.wait_for("a request", |_| create().is_ok());
    let secret = "-n renew-op get secret shell-operator-validating-svc-certificates";
    let stored = || {
        let text = plane.kubectl(&format!(r"{secret} -o 'go-template={{{{index .data `ca.crt`}}}}'"));
        String::from_utf8(STANDARD.decode(text).unwrap()).unwrap()
    };
    // Somebody puts certificates there that soon end; they are replaced at the next look.
    let ending = bundle(0);
    let patch = serde_json::json!({ "stringData": { "ca.crt": ending.ca, "tls.crt": ending.certificate, "tls.key": ending.key } });
    plane.kubectl(&format!(
        "-n renew-op patch secret shell-operator-validating-svc-certificates -p '{patch}'"
    ));
    wait_for_log(&operator, "has new certificates for the webhooks: its certificate counts until");
    let ca = tempfile::NamedTempFile::new().unwrap();
    let newest = stored().replace(&ending.ca, "");
    assert!(!newest.is_empty() && newest != stored(), "the authority before is trusted for a while");
    fs::write(ca.path(), newest).unwrap();
    operator.wait_for("the new certificate", |_| {
        assert!(create().is_ok(), "no request fails meanwhile");
        reaches(port, ca.path(), &[])
    });
    assert!(create().is_ok());
}

/// The API server waits for a second only, the hook takes longer.
#[test]
fn a_hook_that_the_api_server_gives_up_on_is_counted_and_leaves_no_process() {
    let plane = shared();
    plane.kubectl("create ns given-up");
    plane.kubectl("label ns given-up of=given-up-op");
    let (setup, _) = setup("given-up-op");
    let config = checks("given-up-op").replace("namespace:", "timeoutSeconds: 1, namespace:")
        + "\nsettings: {executionTimeout: 4s}";
    let slow =
        "grep -q '\"name\":\"slow\"' $BINDING_CONTEXT_PATH && { sleep 300 & echo $! > $OUT/child; wait; }\n";
    let operator = setup.flag("--webhook-self-signed").hook("h", &config, &format!("{slow}{ALLOW}")).start();
    wait_for_log(&operator, "ValidatingWebhookConfiguration given-up-op-hooks is created");
    // The API server takes a moment until it asks.
    let slow = || plane.try_kubectl("-n given-up create cm slow --dry-run=server");
    operator.wait_for("the refusal", |_| slow().is_err());
    let metric = |text: &str| operator.get("/metrics").unwrap().contains(text);
    operator.wait_for("the metric", |_| metric("shell_operator_webhook_requests_given_up_total"));
    wait_for_log(&operator, "the API server did not wait for the hook's answer");
    operator.wait_for("the end of the run", |_| {
        metric("shell_operator_hook_run_errors_total{binding=\"check.given-up-op.example.org\",hook=\"h\",queue=\"\"} 1")
    });
    let stat = format!("/proc/{}/stat", operator.file("child").trim());
    operator.wait_for("the end of its child", |_| {
        let text = fs::read_to_string(&stat).unwrap_or_default();
        text.is_empty() || text.contains(") Z ")
    });
}

#[test]
fn the_api_server_is_led_to_a_server_that_works_only() {
    let plane = shared();
    let (setup, port) = setup("busy-op");
    let other = std::net::TcpListener::bind(("127.0.0.1", port)).unwrap();
    let operator = setup.flag("--webhook-self-signed").hook("h", &checks("busy-op"), ALLOW).start();
    operator.wait_for("the metric", |operator| {
        let failing = r#"shell_operator_webhooks_failing{kind="admission",part="server"} 1"#;
        operator.get("/metrics").is_ok_and(|text| text.contains(failing))
    });
    assert!(operator.log().contains("cannot serve on"), "{}", operator.log());
    plane.try_kubectl("get validatingwebhookconfiguration busy-op-hooks").unwrap_err();
    drop(other);
    wait_for_log(&operator, "ValidatingWebhookConfiguration busy-op-hooks is created");
}

#[test]
fn two_operators_do_not_write_one_configuration() {
    let plane = shared();
    let (first, _) = setup("owner-one");
    let first = first.flag("--webhook-self-signed").hook("h", &checks("owner-one"), ALLOW).start();
    wait_for_log(&first, "ValidatingWebhookConfiguration owner-one-hooks is created");
    let (second, _) = setup_with_configuration("owner-two", "owner-one");
    let second = second.flag("--webhook-self-signed").hook("h", &checks("owner-two"), ALLOW).start();
    wait_for_log(&second, "belongs to the operator behind the Service owner-one/");
    let names = "get validatingwebhookconfiguration owner-one-hooks -o jsonpath='{.webhooks[*].name}'";
    assert_eq!(plane.kubectl(names), "check.owner-one.example.org");
}
