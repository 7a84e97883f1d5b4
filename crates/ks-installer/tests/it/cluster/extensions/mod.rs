//! Tests extensions of KubeSphere 4 as `InstallPlan`s, with a stand-in for their controller.

mod controller;

use std::sync::OnceLock;
use std::time::Duration;

use ks_installer::engine::{Engine, Phase};
use serde_json::{Value, json};

use crate::cluster::audit;
use crate::cluster::lab::{LIMIT, Lab, Told, pass, pass_until, plane};
use controller::{Controller, Death};

const BASE: &str = "enabled: when needed or spec.base\nsources: [{extension: NS-base}]\n";
const LOGS: &str = "\
enabled: spec.logs.enabled
dependsOn: [base]
inputs: [logs]
sources:
- extension: NS-logs
  config: 'size: {{ spec.logs.size | default(1) }}'
";

/// The kinds of KubeSphere: from the chart ks-core in `KS_CORE`, otherwise kinds with arbitrary fields.
fn kinds() {
    static KINDS: OnceLock<()> = OnceLock::new();
    KINDS.get_or_init(|| {
        let chart = std::env::var("KS_CORE").ok();
        for (kind, plural) in [
            ("Repository", "repositories"),
            ("Extension", "extensions"),
            ("ExtensionVersion", "extensionversions"),
            ("InstallPlan", "installplans"),
        ] {
            if let Some(chart) = &chart {
                let file = format!("{chart}/charts/ks-crds/crds/kubesphere.io_{plural}.yaml");
                plane().kubectl(&format!("apply --server-side -f {file}"));
            } else {
                let open = "{openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}";
                plane().apply(&format!(
                    "{{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {{name: {plural}.kubesphere.io}}, \
                     spec: {{group: kubesphere.io, scope: Cluster, names: {{kind: {kind}, plural: {plural}, singular: {}}}, \
                     versions: [{{name: v1alpha1, served: true, storage: true, schema: {open}}}]}}}}",
                    kind.to_lowercase()
                ));
            }
            let wait = "wait --for=condition=Established --timeout=60s";
            plane().kubectl(&format!("{wait} crd/{plural}.kubesphere.io"));
        }
    });
}

fn lab(name: &str, files: &[(&str, &str)]) -> Lab {
    kinds();
    Lab::new(name, files)
}

/// Both components, with published extensions.
fn logs(name: &str) -> Lab {
    let lab = lab(name, &[("components/base.yaml", BASE), ("components/logs.yaml", LOGS)]);
    publish(&lab, "base", "1.0.0", "");
    publish(&lab, "logs", "1.0.0", "");
    lab
}

/// Publishes this version of an extension and recommends it.
fn publish(lab: &Lab, name: &str, version: &str, more: &str) {
    lab.apply(&format!(
        "{{apiVersion: kubesphere.io/v1alpha1, kind: Extension, metadata: {{name: NS-{name}}}, \
         status: {{recommendedVersion: {version}, versions: [{{version: {version}}}]}}}}\n---\n\
         {{apiVersion: kubesphere.io/v1alpha1, kind: ExtensionVersion, metadata: {{name: NS-{name}-{version}, \
         labels: {{kubesphere.io/extension-ref: NS-{name}}}}}, spec: {{version: {version}{more}}}}}"
    ));
}

fn withdraw(lab: &Lab, name: &str, version: &str) {
    lab.kubectl(&format!("delete extensionversion {}-{name}-{version}", lab.name));
}

fn on() -> Value {
    json!({"logs": {"enabled": true}})
}

fn plan(lab: &Lab, name: &str) -> Value {
    serde_json::from_str(&lab.kubectl(&format!("get installplan {}-{name} -o json", lab.name))).unwrap()
}

fn has_plan(lab: &Lab, name: &str) -> bool {
    lab.has(&format!("installplan/{}-{name}", lab.name))
}

#[tokio::test(flavor = "multi_thread")]
async fn extensions_come_in_order_change_and_go_in_reverse() {
    let lab = logs("ext-life");
    let (engine, controller) = (lab.engine().await, Controller::start(&lab).await);
    let told = pass(&engine, &on(), &[]).await;
    assert_eq!(told.ended(), ["base", "logs"]);
    assert_eq!(controller.begun(), ["install ext-life-base 1.0.0", "install ext-life-logs 1.0.0"]);
    let made = plan(&lab, "logs");
    assert_eq!(made["spec"]["extension"], json!({"name": "ext-life-logs", "version": "1.0.0"}));
    // This extension has no part in clusters.
    assert!(made["spec"]["clusterScheduling"].is_null() && plan(&lab, "base")["spec"]["config"].is_null());

    // The same spec sends no request, and a newer recommended version is ignored.
    publish(&lab, "logs", "2.0.0", "");
    let before = engine_requests(&lab);
    pass(&engine, &on(), &[]).await;
    assert_eq!(engine_requests(&lab), before);
    pass(&engine, &on(), &["logs"]).await;
    assert_eq!(controller.begun(), [""; 0]);

    // Change the values, then the version.
    pass(&engine, &json!({"logs": {"enabled": true, "size": 2}}), &[]).await;
    assert_eq!(controller.begun(), ["upgrade ext-life-logs 1.0.0"]);
    let newer =
        json!({"logs": {"enabled": true, "size": 2}, "extensions": {"ext-life-logs": {"version": "2.0.0"}}});
    let told = pass(&engine, &newer, &[]).await;
    assert_eq!(told.last("logs"), Some(Phase::Ready));
    assert_eq!(controller.begun(), ["upgrade ext-life-logs 2.0.0"]);
    assert_eq!(plan(&lab, "logs")["status"]["version"], "2.0.0");

    let told = pass(&engine, &json!({}), &[]).await;
    assert_eq!(told.ended(), ["logs", "base"]);
    assert_eq!(controller.begun(), ["uninstall ext-life-logs", "uninstall ext-life-base"]);
    assert!(!has_plan(&lab, "logs") && !has_plan(&lab, "base"));
}

/// The requests of the engine. The stand-in uses the same account, but it only lists, and reads versions and helm's records.
fn engine_requests(lab: &Lab) -> usize {
    let theirs =
        ["list installplans/", "get extensionversions/", "get secrets/sh.helm.release.v1.", "get /api"];
    let requests = audit::requests(&lab.name);
    requests.iter().filter(|request| !theirs.iter().any(|one| request.starts_with(one))).count()
}

#[tokio::test(flavor = "multi_thread")]
async fn one_that_fails_is_tried_again_and_after_ten_times_left() {
    let lab = logs("ext-fails");
    let (engine, controller) = (lab.engine().await, Controller::start(&lab).await);
    controller.fate().failures.insert("ext-fails-logs".to_owned(), 2);
    let told = Told::default();
    let failed = |told: &Told| told.failure("logs").is_some();
    pass_until(&engine, &on(), &told, "the failure", failed).await;
    let text = told.failure("logs").unwrap();
    assert_eq!(text, "NotReady: InstallPlan ext-fails-logs: InstallFailed: no such image");
    let told = pass(&engine, &on(), &[]).await;
    assert_eq!(told.last("logs"), Some(Phase::Ready));
    let tries = vec!["install ext-fails-logs 1.0.0"; 3];
    assert_eq!(controller.begun()[1..], tries);

    // This release never succeeds.
    controller.fate().failures.insert("ext-fails-logs".to_owned(), 1000);
    let (told, other) = (Told::default(), json!({"logs": {"enabled": true, "size": 2}}));
    let left = |told: &Told| told.failure("logs").is_some_and(|text| text.contains("ten times"));
    pass_until(&engine, &other, &told, "the end of it", left).await;
    assert_eq!(controller.begun(), vec!["upgrade ext-fails-logs 1.0.0"; 11]);
    // A user who changes the settings requests a new attempt.
    controller.fate().failures.clear();
    engine.forget_failures();
    pass(&engine, &other, &[]).await;
    assert_eq!(controller.begun(), ["upgrade ext-fails-logs 1.0.0"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn one_that_is_not_published_is_named_and_not_waited_for() {
    let lab = lab("ext-none", &[("components/base.yaml", BASE)]);
    let (engine, _controller) = (lab.engine().await, Controller::start(&lab).await);
    let spec = |version: Value| json!({"base": true, "extensions": {"ext-none-base": {"version": version}}});
    let named = |text: &'static str| {
        move |told: &Told| told.failure("base").is_some_and(|found| found.contains(text))
    };
    let (told, any) = (Told::default(), spec(Value::Null));
    pass_until(
        &engine,
        &any,
        &told,
        "its name",
        named("NotPublished: no repository publishes the extension ext-none-base"),
    )
    .await;
    assert!(!has_plan(&lab, "base"), "its controller would do nothing about it");

    // The extension may be published when a repository is read for the first time.
    lab.apply("{apiVersion: kubesphere.io/v1alpha1, kind: Repository, metadata: {name: NS}, spec: {url: 'https://x.example'}}");
    let waits = |told: &Told| {
        told.last("base") == Some(Phase::Progressing("Repository ext-none has not been read yet".to_owned()))
    };
    pass_until(&engine, &any, &told, "a wait", waits).await;
    publish(&lab, "base", "1.0.0", "");
    lab.kubectl("patch repository.kubesphere.io ext-none --type=merge -p '{\"status\":{\"lastSyncTime\":\"2026-01-01T00:00:00Z\"}}'");
    // A version that is not published.
    let other = spec("3.0.0".into());
    let text = "publishes the extension ext-none-base in version 3.0.0; it has 1.0.0";
    pass_until(&engine, &other, &told, "its version", named(text)).await;
    let told = pass(&engine, &any, &[]).await;
    assert_eq!(told.last("base"), Some(Phase::Ready));
}

#[tokio::test(flavor = "multi_thread")]
async fn one_that_requires_another_waits_for_it() {
    let needy = "enabled: spec.needy\nsources: [{extension: NS-needy}]\n";
    let lab = lab("ext-needs", &[("components/base.yaml", BASE), ("components/needy.yaml", needy)]);
    publish(&lab, "base", "1.0.0", "");
    let required = "externalDependencies: [{name: ext-needs-base, type: extension, version: '>=1.0.0', required: true}, \
                    {name: other, version: '*', required: false}]";
    publish(&lab, "needy", "1.0.0", &format!(", installationMode: Multicluster, {required}"));
    let (engine, _controller) = (lab.engine().await, Controller::start(&lab).await);
    let (told, alone) = (Told::default(), json!({"needy": true}));
    let missing = |told: &Told| {
        let text = "RequirementMissing: the extension ext-needs-needy requires ext-needs-base >=1.0.0";
        told.failure("needy").is_some_and(|found| found.starts_with(text))
    };
    pass_until(&engine, &alone, &told, "the name of the other", missing).await;
    // The order is found, although no definition contains it. There is no cluster of KubeSphere, so that part is not installed.
    let both = json!({"needy": true, "base": true});
    let in_cluster = |told: &Told| {
        let text =
            "InstallPlan ext-needs-needy: in the cluster host: its controller has not begun".to_owned();
        told.last("needy") == Some(Phase::Progressing(text))
    };
    pass_until(&engine, &both, &told, "a wait for the part in the cluster", in_cluster).await;
    let clusters = json!({"placement": {"clusters": ["host"]}});
    assert_eq!(plan(&lab, "needy")["spec"]["clusterScheduling"], clusters);
}

/// Helm refuses to change a release with this record.
fn pending(lab: &Lab) {
    lab.apply(
        "{apiVersion: v1, kind: Secret, type: helm.sh/release.v1, metadata: {name: pending, namespace: NS, \
         labels: {owner: helm, name: NS-logs, status: pending-install}}}",
    );
}

/// An engine with short waits.
async fn impatient(lab: &Lab) -> Engine {
    lab.engine().await.with_patience(Duration::from_millis(100)).with_helm_limit(Duration::ZERO)
}

#[tokio::test(flavor = "multi_thread")]
async fn one_whose_controller_died_in_the_middle_is_looked_at_again() {
    let lab = logs("ext-dies");
    let engine = impatient(&lab).await;
    let controller = Controller::start(&lab).await;
    controller.fate().dies.insert("ext-dies-logs".to_owned(), Death::Before);
    pending(&lab);
    let told = pass(&engine, &on(), &[]).await;
    assert_eq!(told.last("logs"), Some(Phase::Ready));
    assert_eq!(controller.begun()[1..], vec!["install ext-dies-logs 1.0.0"; 2]);
    assert!(!lab.has("secret/pending"));

    // The hash of the values is noted, but no Job has installed them.
    controller.fate().dies.insert("ext-dies-logs".to_owned(), Death::After);
    let told = pass(&engine, &json!({"logs": {"enabled": true, "size": 2}}), &[]).await;
    assert_eq!(told.last("logs"), Some(Phase::Ready));
    assert_eq!(controller.begun(), vec!["upgrade ext-dies-logs 1.0.0"; 2]);
}

#[tokio::test(flavor = "multi_thread")]
async fn helm_is_not_disturbed_while_it_may_be_at_work() {
    let short = LOGS.to_owned() + "readyWithinSeconds: 10\n";
    let lab = lab("ext-works", &[("components/base.yaml", BASE), ("components/logs.yaml", &short)]);
    publish(&lab, "base", "1.0.0", "");
    publish(&lab, "logs", "1.0.0", "");
    let controller = Controller::start(&lab).await;
    controller.fate().dies.insert("ext-works-logs".to_owned(), Death::Before);
    pending(&lab);
    let waits = |told: &Told| told.failure("logs").is_some_and(|text| text.contains("Preparing"));
    // The record is new.
    let engine = lab.engine().await.with_patience(Duration::from_millis(100));
    pass_until(&engine, &on(), &Told::default(), "an end of waiting", waits).await;
    assert!(lab.has("secret/pending"));
    assert_eq!(controller.begun()[1..], ["install ext-works-logs 1.0.0"]);
    // A Job runs that the plan does not name.
    lab.apply(
        "{apiVersion: batch/v1, kind: Job, metadata: {name: other, namespace: NS, labels: {kubesphere.io/extension-ref: NS-logs}}, \
         spec: {template: {spec: {restartPolicy: Never, containers: [{name: helm, image: helm}]}}}}",
    );
    let engine = impatient(&lab).await;
    pass_until(&engine, &on(), &Told::default(), "an end of waiting", waits).await;
    assert!(lab.has("secret/pending"));
    assert_eq!(controller.begun(), [""; 0]);
    lab.kubectl("delete job other");
    let told = pass(&engine, &on(), &[]).await;
    assert_eq!(told.last("logs"), Some(Phase::Ready));
    assert!(!lab.has("secret/pending"));
}

#[tokio::test(flavor = "multi_thread")]
async fn one_that_failed_as_helm_was_at_work_is_tried_again_without_its_record() {
    let lab = logs("ext-killed");
    let controller = Controller::start(&lab).await;
    pending(&lab);
    let failed = |told: &Told| told.failure("logs").is_some_and(|text| text.contains("InstallFailed"));
    let engine = lab.engine().await;
    pass_until(&engine, &on(), &Told::default(), "the failure", failed).await;
    assert!(lab.has("secret/pending"));
    let told = pass(&impatient(&lab).await, &on(), &[]).await;
    assert_eq!(told.last("logs"), Some(Phase::Ready));
    assert!(!lab.has("secret/pending"));
    assert_eq!(controller.begun()[1..], vec!["install ext-killed-logs 1.0.0"; 2]);
}

#[tokio::test(flavor = "multi_thread")]
async fn parts_in_clusters_whose_removal_fails_or_hangs_are_removed() {
    let short = BASE.to_owned() + "remove: {withinSeconds: 1}\n";
    let lab = lab("ext-parts", &[("components/base.yaml", short.as_str())]);
    publish(&lab, "base", "1.0.0", ", installationMode: Multicluster");
    let (engine, controller) = (lab.engine().await, Controller::start(&lab).await);
    controller.fate().clusters = ["host", "far"].map(str::to_owned).into();
    let clusters = json!({"ext-parts-base": {"clusters": ["host", "far"]}});
    let (there, off) = (json!({"base": true, "extensions": clusters}), json!({"base": false}));
    pass(&engine, &there, &[]).await;
    let agents = ["ext-parts-base-agent", "ext-parts-base-agent.far"];
    let installed = agents.map(|agent| format!("install {agent} 1.0.0"));
    assert_eq!(controller.begun()[1..], installed);
    controller.fate().dies.insert(agents[0].to_owned(), Death::After);
    controller.fate().failures.insert(agents[1].to_owned(), 1);
    let told = pass(&engine, &off, &[]).await;
    assert_eq!(told.last("base"), Some(Phase::Removed));
    let begun = controller.begun();
    for agent in agents {
        assert_eq!(begun.iter().filter(|one| **one == format!("uninstall {agent}")).count(), 2, "{begun:?}");
    }
    assert_eq!(begun.last().unwrap(), "uninstall ext-parts-base");
}

#[tokio::test(flavor = "multi_thread")]
async fn other_values_for_one_that_is_not_published_any_more_are_refused() {
    let after = "enabled: spec.after\nafter: [logs]\nsources: [{extension: NS-base}]\n";
    let lab = lab("ext-old", &[("components/logs.yaml", &LOGS.replace("dependsOn: [base]\n", ""))]);
    publish(&lab, "logs", "1.0.0", "");
    publish(&lab, "base", "1.0.0", "");
    let (engine, controller) = (lab.engine().await, Controller::start(&lab).await);
    pass(&engine, &on(), &[]).await;
    withdraw(&lab, "logs", "1.0.0");
    let told = pass(&engine, &on(), &["logs"]).await;
    assert_eq!(told.last("logs"), Some(Phase::Ready));
    let other = json!({"logs": {"enabled": true, "size": 2}, "after": true});
    let refused = |told: &Told| {
        told.failure("logs").is_some_and(|text| {
            text.starts_with("NotPublished: the extension ext-old-logs is installed in version 1.0.0, which")
        })
    };
    pass_until(&engine, &other, &Told::default(), "the reason", refused).await;
    assert_eq!(controller.begun(), ["install ext-old-logs 1.0.0"]);

    // A component that only comes after it is installed nevertheless.
    lab.payload_of(&[("components/after.yaml", after)]);
    let came = |told: &Told| refused(told) && told.last("after") == Some(Phase::Ready);
    pass_until(&lab.engine().await, &other, &Told::default(), "the other", came).await;
    assert!(has_plan(&lab, "base"));
}

#[tokio::test(flavor = "multi_thread")]
async fn one_that_is_not_published_any_more_goes_and_leaves_nothing() {
    let lab = logs("ext-gone");
    let (engine, controller) = (lab.engine().await, Controller::start(&lab).await);
    // The removal uses another version that the controller knows.
    pass(&engine, &on(), &[]).await;
    withdraw(&lab, "logs", "1.0.0");
    publish(&lab, "logs", "1.1.0", "");
    let told = pass(&engine, &json!({"base": true}), &[]).await;
    assert_eq!(told.last("logs"), Some(Phase::Removed));
    assert_eq!(controller.begun().last().unwrap(), "uninstall ext-gone-logs");

    // Without any version, the plan stays while helm's release exists.
    pass(&engine, &on(), &[]).await;
    withdraw(&lab, "logs", "1.1.0");
    let (told, off) = (Told::default(), json!({"base": true}));
    let stuck = |told: &Told| {
        let text = "FinalizerStuck: InstallPlan ext-gone-logs: no repository publishes the extension ext-gone-logs any more";
        told.failure("logs").is_some_and(|found| found.starts_with(text))
    };
    pass_until(&engine, &off, &told, "the reason", stuck).await;
    assert!(has_plan(&lab, "logs") && lab.has("secret -l owner=helm,name=ext-gone-logs"));
    lab.kubectl("delete secret -l owner=helm,name=ext-gone-logs");
    // Other clusters cannot be read. This cluster has no part of the extension.
    let clusters = |value: &str| {
        let status = format!("{{\"status\":{{\"clusterSchedulingStatuses\":{value}}}}}");
        lab.kubectl(&format!("patch installplan ext-gone-logs --type=merge -p '{status}'"));
    };
    clusters("{\"host\":{},\"far\":{}}");
    let far = |told: &Told| {
        let text = "its release ext-gone-logs-agent may be in the clusters far\n";
        told.failure("logs").is_some_and(|found| found.contains(text))
    };
    pass_until(&engine, &off, &told, "the other cluster", far).await;
    clusters("{\"far\":null}");
    let told = pass(&engine, &off, &[]).await;
    assert_eq!(told.last("logs"), Some(Phase::Removed));
    assert!(!has_plan(&lab, "logs"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_removal_that_failed_is_tried_again() {
    let lab = lab("ext-again", &[("components/base.yaml", BASE)]);
    publish(&lab, "base", "1.0.0", "");
    let (engine, controller) = (lab.engine().await, Controller::start(&lab).await);
    let (there, off) = (json!({"base": true}), json!({"base": false}));
    pass(&engine, &there, &[]).await;
    controller.fate().failures.insert("ext-again-base".to_owned(), 1);
    let told = Told::default();
    let failed = |told: &Told| told.failed_with("base", "UninstallFailed: a hook failed");
    pass_until(&engine, &off, &told, "the failure", failed).await;
    let told = tokio::time::timeout(LIMIT, pass(&engine, &off, &[])).await.unwrap();
    assert_eq!(told.last("base"), Some(Phase::Removed));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_removal_without_a_controller_names_it() {
    let short = BASE.to_owned() + "remove: {withinSeconds: 1}\n";
    let lab = lab("ext-stays", &[("components/base.yaml", short.as_str())]);
    publish(&lab, "base", "1.0.0", "");
    let (engine, controller) = (lab.engine().await, Controller::start(&lab).await);
    let (there, off) = (json!({"base": true}), json!({"base": false}));
    pass(&engine, &there, &[]).await;
    drop(controller);
    let stuck = |told: &Told| {
        told.failure("base").is_some_and(|text| {
            text.starts_with("FinalizerStuck: InstallPlan ext-stays-base")
                && text.contains("ks-controller-manager")
        })
    };
    let told = Told::default();
    pass_until(&engine, &off, &told, "the name of its controller", stuck).await;
    assert!(has_plan(&lab, "base"), "nobody knows what is left of it");
    lab.kubectl("patch installplan ext-stays-base --type=merge -p '{\"metadata\":{\"finalizers\":null}}'");
}
