//! The objects that point the API server to the operator.

use std::fs;

use super::{ALLOW, checks, setup, setup_with_configuration, wait_for_log};
use crate::cluster::control_plane::shared;
use crate::cluster::proxy::{Fault, Proxy};

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

/// The server starts with the first hook that requests it, and the API server stops sending requests that no hook answers.
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
