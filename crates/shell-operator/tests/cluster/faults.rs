//! What breaks, and that nothing is lost by it.

use std::time::Duration;

use crate::control_plane::{ControlPlane, shared};
use crate::operator::{Setup, run_program};

const CONFIG_MAPS: &str = "configVersion: v1\nkubernetes:\n- {name: cms, apiVersion: v1, kind: ConfigMap, namespace: {nameSelector: {matchNames: [@NS@]}}, labelSelector: {matchLabels: {t: 'x'}}, jqFilter: '.data.k', keepFullObjectsInMemory: false, includeSnapshotsFrom: [cms]}";

fn config(namespace: &str) -> String {
    CONFIG_MAPS.replace("@NS@", namespace)
}

fn create(plane: &ControlPlane, namespace: &str, name: &str, k: &str) {
    plane.apply(&format!(
        "{{apiVersion: v1, kind: ConfigMap, metadata: {{name: {name}, namespace: {namespace}, labels: {{t: x}}}}, data: {{k: '{k}'}}}}"
    ));
}

/// The state that the hook was given last: the sorted results of the snapshot.
fn last_state(operator: &crate::operator::Operator) -> String {
    let contexts = operator.all_contexts("h");
    let Some(last) = contexts.last() else { return String::new() };
    let results = last["snapshots"]["cms"]
        .as_array()
        .unwrap()
        .iter()
        .map(|item| item["filterResult"].as_str().unwrap());
    results.collect::<Vec<_>>().join(",")
}

#[test]
fn the_api_server_may_go_and_come_back_and_etcd_may_be_compacted() {
    let mut plane = ControlPlane::start();
    plane.kubectl("create ns f");
    create(&plane, "f", "a", "1");
    create(&plane, "f", "b", "1");
    let operator = Setup::new(&plane).hook("h", &config("f"), "keep").start();
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
    compact_behind_the_operators_back(&mut plane);
    operator.wait_for("the state after the compaction", |operator| last_state(operator) == "2,9");
}

/// While the API server is down etcd forgets everything that the operator could go on from.
fn compact_behind_the_operators_back(plane: &mut ControlPlane) {
    create(plane, "f", "d", "4");
    let revision = plane.kubectl("-n f get cm d -o jsonpath='{.metadata.resourceVersion}'");
    plane.kubectl("-n f delete cm d");
    plane.kubectl("-n f delete cm c");
    create(plane, "f", "e", "9");
    plane.kill("kube-apiserver");
    let compacted = std::process::Command::new(crate::programs::find("etcd-", "etcdctl"))
        .args(["--endpoints", &plane.etcd(), "compact", revision.trim()])
        .status()
        .unwrap();
    assert!(compacted.success());
    plane.start_api_server();
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
    let saw = |operator: &crate::operator::Operator, event: &str, name: &str| {
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
}

#[test]
fn a_hook_may_write_much_fail_and_hang() {
    let plane = shared();
    plane.kubectl("create ns bad");
    let loud =
        "keep\nhead -c 100000000 /dev/zero | tr '\\0' 'x'; head -c 100000000 /dev/zero | tr '\\0' 'y' >&2";
    let hangs = "configVersion: v1\nonStartup: 2\nsettings: {executionTimeout: 1s}";
    let operator = Setup::new(plane)
        .hook("loud", "configVersion: v1\nonStartup: 1", loud)
        .hook("hangs", hangs, "keep\n[ $(ls $OUT | grep -c hangs) = 1 ] && sleep 1000\nexit 0")
        .start();
    operator.wait_ready();
    assert_eq!(operator.contexts("loud").len(), 1);
    assert_eq!(operator.contexts("hangs").len(), 2);
    assert!(operator.log().contains("it did not end within 1s (settings.executionTimeout) and was killed"));
    let status = std::fs::read_to_string(format!("/proc/{}/status", operator.pid())).unwrap();
    let peak = status.lines().find(|line| line.starts_with("VmHWM")).unwrap();
    let kib: u64 = peak.split_whitespace().nth(1).unwrap().parse().unwrap();
    assert!(kib < 100_000, "{peak}");
    assert_eq!(operator.tmp_files(), 0, "files of runs are removed");
}

#[test]
fn the_end_of_the_operator_is_the_end_of_a_running_hook() {
    let plane = shared();
    let body = "trap 'echo told > $OUT/end; exit 1' TERM\nkeep\nsleep 100 & wait";
    let mut operator = Setup::new(plane).hook("h", "configVersion: v1\nonStartup: 1", body).start();
    operator.wait_for("the run", |operator| !operator.contexts("h").is_empty());
    let (code, time) = operator.stop();
    assert_eq!(code, Some(0), "{}", operator.log());
    assert!(time < Duration::from_secs(5), "{time:?}");
    assert_eq!(operator.file("end"), "told\n");
}

#[test]
fn a_temp_directory_that_cannot_be_written_fails_the_run_until_it_can() {
    let plane = shared();
    let operator = Setup::new(plane)
        .hook("h", "configVersion: v1\nschedule: [{crontab: '* * * * * *'}]", "keep")
        .start();
    operator.wait_for("a run", |operator| !operator.contexts("h").is_empty());
    let (tmp, aside) = (operator.hooks_dir().join("../tmp"), operator.hooks_dir().join("../aside"));
    std::fs::rename(&tmp, &aside).unwrap();
    operator.wait_for("the message", |operator| operator.log().contains("cannot write the files of the run"));
    let runs = operator.contexts("h").len();
    std::fs::rename(&aside, &tmp).unwrap();
    operator.wait_for("runs again", |operator| operator.contexts("h").len() > runs);
}

#[test]
fn an_api_server_that_does_not_answer_ends_the_start_when_told_so() {
    let plane = shared();
    let kubeconfig = std::fs::read_to_string(plane.kubeconfig()).unwrap();
    let dead = tempfile::NamedTempFile::new().unwrap();
    let port = crate::control_plane::free_port();
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

#[test]
fn bad_input_at_start_is_said_at_once() {
    let dir = tempfile::tempdir().unwrap();
    let (code, text) = run_program(
        &[
            "start",
            "--hooks-dir",
            "none",
            "--tmp-dir",
            "tmp",
            "--listen-port",
            "0",
            "--listen-address",
            "127.0.0.1",
            "--kube-config",
            "none",
        ],
        dir.path(),
    );
    assert_eq!(code, Some(1));
    assert!(text.contains("cannot find out how to reach the Kubernetes API"), "{text}");
    let (code, text) = run_program(&["start", "--object-patcher-kube-client-timeout", "soon"], dir.path());
    assert_eq!(code, Some(2));
    assert!(text.contains("'soon' is not a duration"), "{text}");
}
