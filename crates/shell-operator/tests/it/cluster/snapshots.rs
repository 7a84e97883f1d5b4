//! A hook is never run with a snapshot that is not available.

use std::time::Duration;

use crate::cluster::control_plane::{ControlPlane, shared};
use crate::cluster::operator::{Operator, Setup};
use crate::cluster::proxy::{Fault, Proxy};

/// Time in which a hook would have been run, had it not been held.
const SETTLED: Duration = Duration::from_secs(4);

const SECRETS: &str = include_str!("../../../../../deploy/hooks/secrets.sh");

/// A source and its copy in a namespace with a target's label; returns the copy's identity. The labels are unique to the test:
/// each operator sees the whole cluster.
fn copied(plane: &ControlPlane, namespace: &str) -> String {
    let target = format!("{namespace}-target");
    plane.kubectl(&format!("create ns {namespace}"));
    plane.kubectl(&format!("create ns {target}"));
    plane.kubectl(&format!("label ns {target} {namespace}.example.com/target=yes"));
    for (place, label) in [(namespace, "source"), (target.as_str(), "copy")] {
        plane.apply(&format!(
            "{{apiVersion: v1, kind: Secret, metadata: {{name: {namespace}, namespace: {place}, labels: {{{namespace}.example.com/{label}: 'yes'}}}}, stringData: {{k: v}}}}"
        ));
    }
    copy(plane, namespace)
}

fn copy(plane: &ControlPlane, namespace: &str) -> String {
    plane.kubectl(&format!("-n {namespace}-target get secret {namespace} -o jsonpath='{{.metadata.uid}}'"))
}

#[test]
fn the_shipped_hook_deletes_no_copy_because_listing_the_sources_is_forbidden() {
    no_copy_is_deleted("copies-403", Fault::Status(403));
}

#[test]
fn the_shipped_hook_deletes_no_copy_because_the_sources_cannot_be_listed() {
    no_copy_is_deleted("copies-500", Fault::Status(500));
}

#[test]
fn the_shipped_hook_deletes_no_copy_because_the_second_page_of_sources_cannot_be_listed() {
    no_copy_is_deleted("copies-page", Fault::SecondPage);
}

/// Three tests rather than a loop: each waits for most of its time.
fn no_copy_is_deleted(namespace: &str, fault: Fault) {
    let plane = shared();
    let before = copied(plane, namespace);
    plane.kubectl(&format!("-n {namespace} create secret generic z1"));
    plane.kubectl(&format!("-n {namespace} create secret generic z2"));
    plane.kubectl(&format!("-n {namespace} label secret z1 z2 {namespace}.example.com/source=yes"));
    let proxy = Proxy::start(plane);
    proxy.disturb(&format!("/namespaces/{namespace}/secrets?"), fault);
    let framework = format!("FRAMEWORK_DIR={}/shell", env!("CARGO_MANIFEST_DIR"));
    let operator = Setup::new(plane)
        .wrapper(&["env", &framework, &format!("SHELL_OPERATOR_NAMESPACE={namespace}")])
        .flag(&format!("--kube-server={}", proxy.url()))
        .program("secrets.sh", &SECRETS.replace("copy.example.com", &format!("{namespace}.example.com")))
        .start();
    operator.wait_for("the failed list", |operator| operator.log().contains("binding has to wait"));
    std::thread::sleep(SETTLED);
    assert!(!operator.log().contains("Execute hook"), "{}", operator.log());
    assert_eq!(copy(plane, namespace), before);
    proxy.disturb_no_more();
    operator.wait_for("a copy that was missing", |_| {
        plane.try_kubectl(&format!("-n {namespace}-target get secret z1 z2")).is_ok()
    });
    assert_eq!(copy(plane, namespace), before, "it was never deleted");
}

const KINDS: &str = "configVersion: v1
kubernetes:
- {name: maps, kind: ConfigMap, namespace: {nameSelector: {matchNames: [@NS@]}}, nameSelector: {matchNames: [x]}, group: all}
- {name: late, apiVersion: example.org/v1, kind: @KIND@, group: all}
- {name: free, kind: ConfigMap, namespace: {nameSelector: {matchNames: [@NS@]}}, nameSelector: {matchNames: [x]}, queue: free}
schedule:
- {name: tick, crontab: '* * * * * *', includeSnapshotsFrom: [late], queue: tick}
- {name: plain, crontab: '* * * * * *', queue: plain}";

fn config(namespace: &str, kind: &str) -> String {
    KINDS.replace("@NS@", namespace).replace("@KIND@", kind)
}

fn bindings(operator: &Operator) -> Vec<String> {
    let name = |context: &serde_json::Value| context["binding"].as_str().unwrap().to_owned();
    operator.all_contexts("h").iter().map(name).collect()
}

fn make_kind(plane: &ControlPlane, kind: &str) {
    let plural = format!("{}s", kind.to_lowercase());
    plane.apply(&format!(
        "{{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {{name: {plural}.example.org}}, spec: {{group: example.org, scope: Cluster, names: {{kind: {kind}, plural: {plural}}}, versions: [{{name: v1, served: true, storage: true, schema: {{openAPIV3Schema: {{type: object, x-kubernetes-preserve-unknown-fields: true}}}}}}]}}}}"
    ));
    plane.kubectl(&format!("wait --for=condition=Established crd/{plural}.example.org"));
    let object = format!("{{apiVersion: example.org/v1, kind: {kind}, metadata: {{name: one}}}}");
    for _ in 0..100 {
        if plane.try_kubectl(&format!("apply -f - <<< '{object}'")).is_ok() {
            return;
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    panic!("{kind} is not served");
}

/// Only bindings that include the objects of the missing kind wait for it.
fn only_the_others_run_until_the_kind_is_there(operator: &Operator, kind: &str) {
    operator.wait_for("the binding and the schedule that need nothing of it", |operator| {
        let seen = bindings(operator);
        seen.iter().any(|name| name == "free") && seen.iter().filter(|name| *name == "plain").count() > 3
    });
    let held = bindings(operator).into_iter().find(|name| ["maps", "late", "tick"].contains(&name.as_str()));
    assert_eq!(held, None, "{}", operator.log());
    make_kind(shared(), kind);
    operator.wait_for("the runs that need it", |operator| {
        let seen = bindings(operator);
        // A run of a group has the name of the binding whose event was the last.
        [&["maps", "late"][..], &["tick"]]
            .iter()
            .all(|wanted| seen.iter().any(|name| wanted.contains(&name.as_str())))
    });
    operator.wait_for("its object, handed over with the others of the group", |operator| {
        let is_whole = |context: &serde_json::Value| {
            context["snapshots"]["maps"].is_array() && context["snapshots"]["late"][0].is_object()
        };
        operator.all_contexts("h").iter().any(is_whole)
    });
}

#[test]
fn runs_wait_for_a_kind_that_comes_late_when_they_hand_over_its_objects() {
    shared().kubectl("create ns late-kind");
    let operator = Setup::new(shared()).hook("h", &config("late-kind", "Tardy"), "keep").start();
    only_the_others_run_until_the_kind_is_there(&operator, "Tardy");
}

#[test]
fn a_binding_that_a_reload_adds_holds_the_runs_that_include_it() {
    shared().kubectl("create ns late-reload");
    let first = "configVersion: v1\nonStartup: 1";
    let operator = Setup::new(shared()).flag("--hooks-reload").hook("h", first, "keep").start();
    operator.wait_ready();
    operator.put_hook("h", &config("late-reload", "Belated"), "keep");
    operator.wait_for("the reload", |operator| operator.log().contains("are taken over"));
    only_the_others_run_until_the_kind_is_there(&operator, "Belated");
}
