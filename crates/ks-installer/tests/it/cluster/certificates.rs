//! Tests generated certificates and passwords: they are kept while they are valid, and renewed together with all objects that
//! contain them.

use std::time::Duration;

use ks_installer::engine::Phase;
use serde_json::{Value, json};

use crate::cluster::audit;
use crate::cluster::lab::{Lab, pass};

const COMPONENT: &str = "\
enabled: spec.hook.enabled
namespace: NS
generated:
- {name: word, password: 16}
- {name: web, certificate: [hook.NS.svc]}
sources: [{manifests: manifests/hook.yaml}]
";
const OBJECTS: &str = "\
apiVersion: v1
kind: Secret
metadata: {name: web}
stringData: {tls.crt: {{ generated.web.cert | tojson }}, tls.key: {{ generated.web.key | tojson }}}
---
{apiVersion: v1, kind: Secret, metadata: {name: word}, stringData: {word: {{ generated.word }}}}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: NS}
webhooks:
- name: hook.example.com
  admissionReviewVersions: [v1]
  sideEffects: None
  clientConfig: {url: 'https://127.0.0.1:1/', caBundle: {{ generated.web.ca | b64encode }}}
  rules: [{apiGroups: [NS.example.com], apiVersions: [v1], operations: [CREATE], resources: [none]}]
";
const OTHER: &str = "enabled: 'true'\nnamespace: NS\nsources: [{manifests: manifests/other.yaml}]\n";

fn lab(name: &str) -> Lab {
    let files = [
        ("components/hook.yaml", COMPONENT),
        ("manifests/hook.yaml", OBJECTS),
        ("components/other.yaml", OTHER),
        ("manifests/other.yaml", "{apiVersion: v1, kind: ConfigMap, metadata: {name: other}}\n"),
    ];
    Lab::new(name, &files)
}

fn on() -> Value {
    json!({"hook": {"enabled": true}})
}

/// The certificate, the password and the CAs of the webhook in the cluster.
fn held(lab: &Lab) -> [String; 3] {
    let bundle = "get validatingwebhookconfiguration NS -o jsonpath='{.webhooks[0].clientConfig.caBundle}' | base64 -d";
    [
        lab.kubectl("get secret web -o jsonpath='{.data.tls\\.crt}' | base64 -d"),
        lab.kubectl("get secret word -o jsonpath='{.data.word}'"),
        lab.kubectl(&bundle.replace("NS", &lab.name)),
    ]
}

#[tokio::test]
async fn a_second_identical_run_makes_no_new_certificate_and_no_new_password() {
    let lab = lab("certs-same");
    pass(&lab.engine().await, &on(), &[]).await;
    let before = held(&lab);
    // This includes a check of all objects, and a new rendering.
    for suspects in [&[][..], &["hook"]] {
        assert_eq!(pass(&lab.engine().await, &on(), suspects).await.last("hook"), Some(Phase::Ready));
        assert_eq!(held(&lab), before);
    }
}

#[tokio::test]
async fn a_certificate_near_its_end_is_made_anew_and_its_webhook_trusts_both() {
    let lab = lab("certs-end");
    let short = lab.engine().await.with_certificate_life(Duration::from_hours(24 * 29));
    pass(&short, &on(), &[]).await;
    let [cert, word, bundle] = held(&lab);
    let since = audit::requests("certs-end").len();
    let engine = lab.engine().await;
    // No user requests the renewal, and the engine has no old rendering.
    assert_eq!(pass(&engine, &on(), &[]).await.last("hook"), Some(Phase::Ready));
    let [new_cert, new_word, new_bundle] = held(&lab);
    assert!(new_cert != cert && new_word == word, "{new_cert}\n{cert}");
    assert!(new_bundle.ends_with(&bundle) && new_bundle.len() > bundle.len(), "{new_bundle}");
    let written = audit::writes(&audit::requests("certs-end")[since..]);
    assert_eq!(written, ["patch secrets/web", "patch validatingwebhookconfigurations/certs-end"]);

    let since = audit::requests("certs-end").len();
    pass(&engine, &on(), &[]).await;
    assert_eq!(audit::requests("certs-end")[since..], [""; 0]);
}

/// The same engine has rendered the old certificate.
#[tokio::test]
async fn what_was_rendered_before_its_end_is_not_used_after_it() {
    let lab = lab("certs-cache");
    let engine = lab.engine().await.with_certificate_life(Duration::from_hours(24 * 29));
    pass(&engine, &on(), &[]).await;
    let before = held(&lab);
    pass(&engine, &on(), &["hook"]).await;
    assert_ne!(held(&lab)[0], before[0]);
}

#[tokio::test]
async fn what_the_spec_asks_for_is_made_anew_once() {
    let lab = lab("certs-rotate");
    let rotate = |values: Value| json!({"hook": {"enabled": true}, "rotate": {"hook": values}});
    pass(&lab.engine().await, &on(), &[]).await;
    let first = held(&lab);
    pass(&lab.engine().await, &rotate(json!({"web": "2026-11"})), &[]).await;
    let second = held(&lab);
    assert!(second[0] != first[0] && second[1] == first[1], "only the certificate is asked for");
    pass(&lab.engine().await, &rotate(json!({"web": "2026-11"})), &["hook"]).await;
    assert_eq!(held(&lab), second);
    // A number is a valid value, too.
    pass(&lab.engine().await, &rotate(json!({"web": "2026-11", "word": 1})), &[]).await;
    let third = held(&lab);
    assert!(third[0] == second[0] && third[1] != second[1], "only the password is asked for");
}

#[tokio::test]
async fn a_value_of_another_component_is_the_same_one_and_is_renewed_with_it() {
    let lab = lab("certs-shared");
    let user = "enabled: spec.hook.enabled\nnamespace: NS\ndependsOn: [hook]\n\
        generated: [{name: word, of: hook}]\nsources: [{manifests: manifests/user.yaml}]\n";
    let map = "{apiVersion: v1, kind: ConfigMap, metadata: {name: user}, data: {word: '{{ generated.word | b64encode }}'}}\n";
    lab.payload_of(&[("components/user.yaml", user), ("manifests/user.yaml", map)]);
    let word = || lab.kubectl("get cm user -o jsonpath='{.data.word}'");
    pass(&lab.engine().await, &on(), &[]).await;
    let first = word();
    assert_eq!(first, held(&lab)[1]);
    assert!(!lab.has("secret ks-installer-generated-user"), "it is kept by the one that makes it");
    let renewed = json!({"hook": {"enabled": true}, "rotate": {"hook": {"word": "again"}}});
    pass(&lab.engine().await, &renewed, &[]).await;
    assert_eq!(word(), held(&lab)[1]);
    assert_ne!(word(), first);
}
