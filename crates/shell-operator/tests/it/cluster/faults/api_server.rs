//! An API server that stops, cuts off, forgets, or does not answer; kinds that are removed.

use std::time::Duration;

use super::{config, create, last_state};
use crate::cluster::control_plane::{ControlPlane, shared};
use crate::cluster::operator::{Operator, Setup, run_program};
use crate::cluster::proxy::{Fault, Proxy};

#[test]
fn the_api_server_may_go_and_come_back_and_etcd_may_be_compacted() {
    let mut plane = ControlPlane::start();
    plane.kubectl("create ns f");
    create(&plane, "f", "a", "1");
    create(&plane, "f", "b", "1");
    let proxy = Proxy::start(&plane);
    let server = format!("--kube-server={}", proxy.url());
    let operator = Setup::new(&plane).flag(&server).hook("h", &config("f"), "keep").start();
    operator.wait_for("the state at start", |operator| last_state(operator) == "1,1");
    plane.kill("kube-apiserver");
    std::thread::sleep(Duration::from_secs(2));
    plane.start_api_server();
    plane.kubectl("-n f delete cm a");
    create(&plane, "f", "b", "2");
    create(&plane, "f", "c", "3");
    operator.wait_for("the state after the restart", |operator| last_state(operator) == "2,3");
    let events: Vec<String> = operator
        .all_contexts("h")
        .iter()
        .filter_map(|context| {
            Some(format!("{}:{}", context["watchEvent"].as_str()?, context["filterResult"].as_str()?))
        })
        .collect();
    for event in ["Deleted:1", "Modified:2", "Added:3"] {
        assert_eq!(events.iter().filter(|known| *known == event).count(), 1, "{events:?}");
    }
    assert_eq!(events.len(), 3, "{events:?}");
    proxy.cut();
    compact_behind_the_operators_back(&mut plane);
    proxy.mend();
    operator.wait_for("the state after the compaction", |operator| last_state(operator) == "2,9");
    // It could not resume from its last version: 410 Gone.
    let metrics = operator.get("/metrics").unwrap();
    assert!(metrics.contains(r#"kubernetes_client_watch_errors_total{error_type="expired"}"#), "{metrics}");
}

/// While the operator is cut off, etcd drops everything that the operator could resume from.
fn compact_behind_the_operators_back(plane: &mut ControlPlane) {
    plane.kubectl("-n f delete cm c");
    create(plane, "f", "e", "9");
    let revision = plane.kubectl("-n f get cm e -o jsonpath='{.metadata.resourceVersion}'");
    plane.kill("kube-apiserver");
    let compacted = std::process::Command::new(crate::cluster::programs::find("etcd-", "etcdctl"))
        .args(["--endpoints", &plane.etcd(), "compact", revision.trim()])
        .status()
        .unwrap();
    assert!(compacted.success());
    plane.start_api_server();
}

#[test]
fn a_watch_may_be_cut_at_any_time() {
    let plane = shared();
    plane.kubectl("create ns cut");
    for name in ["a", "b"] {
        create(plane, "cut", name, "1");
    }
    let proxy = Proxy::start(plane);
    let server = format!("--kube-server={}", proxy.url());
    let operator = Setup::new(plane).flag(&server).hook("h", &config("cut"), "keep").start();
    operator.wait_for("the state at start", |operator| last_state(operator) == "1,1");
    for round in 2..5 {
        proxy.cut();
        plane.kubectl("-n cut delete cm a");
        create(plane, "cut", "a", &round.to_string());
        create(plane, "cut", "b", &round.to_string());
        proxy.mend();
        let state = format!("{round},{round}");
        operator.wait_for("the state after the cut", |operator| last_state(operator) == state);
    }
    assert!(operator.log().contains("broke, it is resumed"), "{}", operator.log());
}

/// The watch receives nothing: the hook learns of changes only by listing again.
#[test]
fn a_resynchronization_period_finds_what_the_watch_missed() {
    let plane = shared();
    plane.kubectl("create ns resync");
    create(plane, "resync", "a", "1");
    let proxy = Proxy::start(plane);
    proxy.make_deaf();
    let server = format!("--kube-server={}", proxy.url());
    let with_period = config("resync").replace("name: cms,", "name: cms, resynchronizationPeriod: 1s,");
    let operator = Setup::new(plane)
        .flag(&server)
        .flag("--kube-client-qps=0")
        .hook("h", &with_period, "keep")
        .hook("without", &config("resync"), "keep")
        .start();
    operator.wait_for("the state at start", |operator| last_state(operator) == "1");
    create(plane, "resync", "a", "2");
    create(plane, "resync", "b", "3");
    operator.wait_for("the changes", |operator| last_state(operator) == "2,3");
    plane.kubectl("-n resync delete cm a");
    operator.wait_for("the deletion", |operator| last_state(operator) == "3");
    std::thread::sleep(Duration::from_secs(3));
    let events =
        operator.all_contexts("h").iter().filter(|context| context.get("watchEvent").is_some()).count();
    assert_eq!(events, 3, "what did not change is no event, however often it is listed");
    assert_eq!(operator.contexts("without").len(), 1, "only the period helps");
}

/// Such kinds have no watch: metrics of pods, for instance.
#[test]
fn a_kind_that_can_only_be_listed_is_listed_again_and_again() {
    let plane = shared();
    plane.kubectl("create ns no-watch");
    create(plane, "no-watch", "a", "1");
    let proxy = Proxy::start(plane);
    proxy.disturb("watch=1", Fault::Status(405));
    let server = format!("--kube-server={}", proxy.url());
    let operator = Setup::new(plane)
        .flag(&server)
        .flag("--kube-client-qps=0")
        .hook("h", &config("no-watch"), "keep")
        .start();
    operator.wait_for("the state at start", |operator| last_state(operator) == "1");
    create(plane, "no-watch", "b", "2");
    operator.wait_for("the new object", |operator| last_state(operator) == "1,2");
    plane.kubectl("-n no-watch delete cm a");
    operator.wait_for("the end of an object", |operator| last_state(operator) == "2");
}

#[test]
fn a_kind_may_be_removed_and_come_back() {
    let plane = shared();
    let crd = "{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: gones.example.org}, spec: {group: example.org, scope: Cluster, names: {kind: Gone, plural: gones}, versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}]}}";
    let create = |name: &str| {
        let object = format!("{{apiVersion: example.org/v1, kind: Gone, metadata: {{name: {name}}}}}");
        let applied = || plane.try_kubectl(&format!("apply -f - <<< '{object}'")).is_ok();
        assert!((0..100).any(|_| applied() || {
            std::thread::sleep(Duration::from_millis(100));
            false
        }));
    };
    plane.apply(crd);
    create("one");
    let config = "configVersion: v1\nkubernetes:\n- {name: gone, apiVersion: example.org/v1, kind: Gone, jqFilter: .metadata.name}";
    let operator = Setup::new(plane).hook("h", config, "keep").start();
    let saw = |operator: &Operator, event: &str, name: &str| {
        operator
            .all_contexts("h")
            .iter()
            .any(|context| context["watchEvent"] == event && context["filterResult"] == name)
    };
    operator.wait_ready();
    plane.kubectl("delete crd gones.example.org");
    operator.wait_for("the end of the object", |operator| saw(operator, "Deleted", "one"));
    plane.apply(crd);
    create("two");
    operator.wait_for("the new object", |operator| saw(operator, "Added", "two"));
    let socket = operator.socket().display().to_string();
    let arguments = ["hook", "snapshot", "h", "-o", "json", "--debug-unix-socket", &socket];
    let (_, snapshot) = run_program(&arguments, &operator.out());
    assert!(snapshot.contains("\"two\"") && !snapshot.contains("\"one\""), "{snapshot}");
}

#[test]
fn an_api_server_that_does_not_answer_ends_the_start_when_told_so() {
    let plane = shared();
    let kubeconfig = std::fs::read_to_string(plane.kubeconfig()).unwrap();
    let dead = tempfile::NamedTempFile::new().unwrap();
    let port = crate::cluster::control_plane::free_port();
    let start = kubeconfig.find("https://127.0.0.1:").unwrap() + "https://127.0.0.1:".len();
    let end = start + kubeconfig[start..].find('\'').unwrap();
    std::fs::write(dead.path(), format!("{}{port}{}", &kubeconfig[..start], &kubeconfig[end..])).unwrap();
    let mut operator = Setup::new(plane)
        .kubeconfig(dead.path().to_owned())
        .flag("--kube-timeout=2s")
        .hook("h", "configVersion: v1\nkubernetes: [{kind: Pod}]", "keep")
        .start();
    assert_eq!(operator.wait_for_end(), Some(1));
    let log = operator.log();
    assert!(log.contains("does not answer, trying again"), "{log}");
    assert!(log.contains("did not answer within 2s"), "{log}");
}
