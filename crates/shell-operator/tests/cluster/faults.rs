//! What breaks, and that nothing is lost by it.

use std::time::Duration;

use crate::control_plane::{ControlPlane, shared};
use crate::operator::{Operator, Setup, run_program};
use crate::orphans::skipped;
use crate::proxy::Proxy;

const CONFIG_MAPS: &str = "configVersion: v1\nkubernetes:\n- {name: cms, apiVersion: v1, kind: ConfigMap, namespace: {nameSelector: {matchNames: [@NS@]}}, labelSelector: {matchLabels: {t: 'x'}}, jqFilter: '.data.k', keepFullObjectsInMemory: false, includeSnapshotsFrom: [cms]}";

fn config(namespace: &str) -> String {
    CONFIG_MAPS.replace("@NS@", namespace)
}

fn create(plane: &ControlPlane, namespace: &str, name: &str, k: &str) {
    plane.apply(&format!(
        "{{apiVersion: v1, kind: ConfigMap, metadata: {{name: {name}, namespace: {namespace}, labels: {{t: x}}}}, data: {{k: '{k}'}}}}"
    ));
}

/// The state that the hook `h` was given last: the sorted results of the snapshot.
fn last_state(operator: &Operator) -> String {
    state_of(operator, "h")
}

fn state_of(operator: &Operator, hook: &str) -> String {
    let contexts = operator.all_contexts(hook);
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
    // It could not go on from where it was: 410 Gone.
    let metrics = operator.get("/metrics").unwrap();
    assert!(metrics.contains(r#"kubernetes_client_watch_errors_total{error_type="expired"}"#), "{metrics}");
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
    assert!(operator.log().contains("broke, it is taken up again"), "{}", operator.log());
}

/// The watch hears nothing: what the hook learns comes from listing again.
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

/// The delays add up to 41 to 46 s.
#[test]
fn a_hook_that_fails_five_times_sees_the_final_state() {
    let plane = shared();
    plane.kubectl("create ns five");
    create(plane, "five", "a", "1");
    let body = "[ $(grep -sc x $OUT/failures) = 5 ] || { [ -e $OUT/fail ] && { echo x >> $OUT/failures; exit 1; }; }\nkeep";
    let operator = Setup::new(plane).hook("h", &config("five"), body).start();
    operator.wait_for("the state at start", |operator| last_state(operator) == "1");
    std::fs::write(operator.out().join("fail"), "").unwrap();
    create(plane, "five", "a", "2");
    operator.wait_for("a failure", |operator| operator.file("failures") == "x\n");
    create(plane, "five", "b", "3");
    plane.kubectl("-n five delete cm a");
    operator
        .wait_long_for(Duration::from_secs(90), "the final state", |operator| last_state(operator) == "3");
    assert_eq!(operator.file("failures").len(), 10);
    assert_eq!(operator.contexts("h").len(), 2, "what came meanwhile is combined with what failed");
    let events: Vec<String> = operator.all_contexts("h")[1..]
        .iter()
        .map(|context| {
            format!(
                "{}:{}",
                context["watchEvent"].as_str().unwrap(),
                context["filterResult"].as_str().unwrap()
            )
        })
        .collect();
    assert_eq!(events, ["Modified:2", "Added:3", "Deleted:2"]);
}

#[test]
fn hooks_that_hang_write_much_or_leave_children_see_the_final_state() {
    let plane = shared();
    plane.kubectl("create ns trouble");
    create(plane, "trouble", "a", "1");
    let hang = "settings: {executionTimeout: 6s}";
    let faults = [
        ("hangs", hang, "sleep 1000"),
        ("stays", hang, "trap '' TERM; (trap '' TERM; sleep 1000; sleep 1000) & sleep 1000; sleep 1000"),
        ("loud", "", "head -c 100000000 /dev/zero | tr '\\0' 'x' >&2; exit 1"),
        ("leaves", "", "sleep 300 & setsid sleep 300 & echo why >&2; exit 1"),
    ];
    let mut setup = Setup::new(plane);
    for (name, settings, fault) in faults {
        let config = format!(
            "{}\n{settings}",
            config("trouble").replace("jqFilter", &format!("queue: {name}, jqFilter"))
        );
        let body = format!(
            "if [ -e $OUT/go ] && [ ! -e $OUT/{name}-had ]; then touch $OUT/{name}-had; {fault}\nfi\nkeep"
        );
        setup = setup.hook(name, &config, &body);
    }
    let operator = setup.start();
    operator.wait_ready();
    std::fs::write(operator.out().join("go"), "").unwrap();
    create(plane, "trouble", "a", "2");
    operator.wait_for("the faults", |operator| {
        faults.iter().all(|(name, ..)| operator.out().join(format!("{name}-had")).exists())
    });
    create(plane, "trouble", "b", "3");
    plane.kubectl("-n trouble delete cm a");
    for (name, ..) in faults {
        operator.wait_for("the final state", |operator| state_of(operator, name) == "3");
    }
    let log = operator.log();
    assert_eq!(log.matches("it did not end within 6s").count(), 2, "{log}");
    assert!(log.contains("leaves FAILED: why"), "an open pipe does not hide why: {log}");
}

#[test]
fn patches_are_done_though_the_hook_failed_when_it_says_so() {
    let plane = shared();
    plane.kubectl("create ns ignore");
    plane.kubectl("-n ignore create cm target");
    let body = r#"
patch() { echo "{\"operation\": \"MergePatch\", \"kind\": \"ConfigMap\", \"namespace\": \"ignore\", \"name\": \"target\", \"mergePatch\": {\"data\": {\"$1\": \"yes\"}}, \"ignoreHookError\": $2}"; }
{ patch marked true; patch unmarked false; } > $KUBERNETES_PATCH_PATH
[ -e $OUT/good ] && exit 0
exit 1"#;
    let operator = Setup::new(plane).hook("h", "configVersion: v1\nonStartup: 1", body).start();
    let data = || plane.kubectl("-n ignore get cm target -o jsonpath='{.data}'");
    operator.wait_for("the marked patch", |_| data() == r#"{"marked":"yes"}"#);
    operator.wait_for("the failure", |operator| operator.log().contains("Hook failed. Will retry"));
    assert_eq!(data(), r#"{"marked":"yes"}"#);
    std::fs::write(operator.out().join("good"), "").unwrap();
    operator.wait_for("both", |_| data() == r#"{"marked":"yes","unmarked":"yes"}"#);
}

/// The file system for temporary files has room for small contexts only. The big object is in the snapshot, so the run
/// fails until it is gone.
#[test]
fn a_full_disk_fails_the_run_until_there_is_room() {
    let plane = shared();
    plane.kubectl("create ns full");
    create(plane, "full", "a", "1");
    let mut setup = Setup::new(plane);
    std::fs::create_dir(setup.tmp_dir()).unwrap();
    let mount = format!("mount -t tmpfs -o size=128k tmpfs {} && exec \"$@\"", setup.tmp_dir().display());
    // Without root in a user namespace of its own.
    let ways: [&[&str]; 2] = [&["unshare", "--mount"], &["unshare", "--mount", "--user", "--map-root-user"]];
    let wrapper = |way: &[&'static str]| {
        [way, &["sh", "-c"], &[mount.as_str(), "sh"]]
            .concat()
            .iter()
            .map(|word| (*word).to_owned())
            .collect::<Vec<String>>()
    };
    let works = |way: &&&[&'static str]| {
        let words = wrapper(way);
        std::process::Command::new(&words[0])
            .args(&words[1..])
            .arg("true")
            .output()
            .is_ok_and(|output| output.status.success())
    };
    let Some(way) = ways.iter().find(works) else {
        skipped("a file system of a given size can be mounted neither as this user nor in a user namespace");
        return;
    };
    let command = wrapper(way);
    setup = setup.wrapper(&command.iter().map(String::as_str).collect::<Vec<_>>());
    let config = config("full").replace("includeSnapshotsFrom: [cms]", "includeSnapshotsFrom: [cms, big]")
        + "\n- {name: big, kind: ConfigMap, executeHookOnEvent: [], executeHookOnSynchronization: false, namespace: {nameSelector: {matchNames: [full]}}, nameSelector: {matchNames: [big]}}";
    let operator = setup.hook("h", &config, "keep").start();
    operator.wait_for("the state at start", |operator| last_state(operator) == "1");
    let big = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(big.path(), "x".repeat(400_000)).unwrap();
    plane.kubectl(&format!("-n full create cm big --from-file=k={}", big.path().display()));
    let socket = operator.socket().display().to_string();
    let arguments = ["hook", "snapshot", "h", "-o", "json", "--debug-unix-socket", &socket];
    operator
        .wait_for("the big object", |operator| run_program(&arguments, &operator.out()).1.contains("xxx"));
    create(plane, "full", "a", "2");
    operator.wait_for("the message", |operator| operator.log().contains("No space left on device"));
    create(plane, "full", "b", "3");
    plane.kubectl("-n full delete cm a");
    plane.kubectl("-n full delete cm big");
    operator.wait_for("the final state", |operator| last_state(operator) == "3");
}

/// While the operator is cut off etcd forgets everything that it could go on from.
fn compact_behind_the_operators_back(plane: &mut ControlPlane) {
    plane.kubectl("-n f delete cm c");
    create(plane, "f", "e", "9");
    let revision = plane.kubectl("-n f get cm e -o jsonpath='{.metadata.resourceVersion}'");
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
fn a_hook_may_write_much_fail_and_hang() {
    let plane = shared();
    plane.kubectl("create ns bad");
    let loud =
        "keep\nhead -c 100000000 /dev/zero | tr '\\0' 'x'; head -c 100000000 /dev/zero | tr '\\0' 'y' >&2";
    let hangs = "configVersion: v1\nonStartup: 2\nsettings: {executionTimeout: 4s}";
    let operator = Setup::new(plane)
        .hook("loud", "configVersion: v1\nonStartup: 1", loud)
        .hook("hangs", hangs, "keep\n[ $(ls $OUT | grep -c hangs) = 1 ] && sleep 1000\nexit 0")
        .start();
    operator.wait_ready();
    assert_eq!(operator.contexts("loud").len(), 1);
    assert_eq!(operator.contexts("hangs").len(), 2);
    assert!(operator.log().contains("it did not end within 4s (settings.executionTimeout) and was killed"));
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
    let mut operator = Setup::new(plane)
        .flag("--shutdown-timeout=11s")
        .hook("h", "configVersion: v1\nonStartup: 1", body)
        .start();
    operator.wait_for("the run", |operator| !operator.contexts("h").is_empty());
    let (code, time) = operator.stop();
    // A hook that does not end before it is killed makes the code 1.
    assert_eq!(code, Some(0), "{}", operator.log());
    assert!(time >= Duration::from_secs(1), "it had its time: {time:?}");
    assert_eq!(operator.file("end"), "told\n");
}

/// The hook is in the middle of its work, and another one waits because it may not run that often.
#[test]
fn the_end_of_the_operator_lets_a_running_hook_finish_and_gives_the_lease_back() {
    let plane = shared();
    plane.kubectl("create ns finish");
    let body = "keep\ntrap 'echo told > $OUT/told' TERM\nuntil [ -e $OUT/go ]; do sleep 0.1; done\n\
        echo '{operation: Create, object: {apiVersion: v1, kind: ConfigMap, metadata: {name: done, namespace: finish}}}' > $KUBERNETES_PATCH_PATH";
    let throttled = "configVersion: v1\nsettings: {executionMinInterval: 1h}\nschedule: [{crontab: '* * * * * *', queue: q}]";
    let mut operator = Setup::new(plane)
        .flag("--leader-election")
        .flag("--namespace=finish")
        .hook("h", "configVersion: v1\nonStartup: 1", body)
        .hook("throttled", throttled, "keep")
        .start();
    operator.wait_for("the run", |operator| !operator.contexts("h").is_empty());
    // Whoever is in the middle of a request does not hold up the end.
    let mut request = std::net::TcpStream::connect(("127.0.0.1", operator.port())).unwrap();
    std::io::Write::write_all(&mut request, b"GET /metrics HT").unwrap();
    let go = operator.out().join("go");
    let helper = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_secs(3));
        std::fs::write(go, "").unwrap();
    });
    let (code, _) = operator.stop();
    helper.join().unwrap();
    assert_eq!(code, Some(0), "{}", operator.log());
    assert_eq!(operator.file("told"), "", "it was not disturbed");
    plane.kubectl("-n finish get cm done");
    let holder = "-n finish get lease shell-operator -o jsonpath='{.spec.holderIdentity}'";
    assert_eq!(plane.kubectl(holder), "", "the next replica can act at once");
}

#[test]
fn a_temp_directory_that_cannot_be_written_fails_the_run_until_it_can() {
    let plane = shared();
    plane.kubectl("create ns no-tmp");
    create(plane, "no-tmp", "a", "1");
    let operator = Setup::new(plane).hook("h", &config("no-tmp"), "keep").start();
    operator.wait_for("the state at start", |operator| last_state(operator) == "1");
    let (tmp, aside) = (operator.hooks_dir().join("../tmp"), operator.hooks_dir().join("../aside"));
    std::fs::rename(&tmp, &aside).unwrap();
    create(plane, "no-tmp", "a", "2");
    operator.wait_for("the message", |operator| operator.log().contains("cannot write the files of the run"));
    create(plane, "no-tmp", "b", "3");
    std::fs::rename(&aside, &tmp).unwrap();
    operator.wait_for("the final state", |operator| last_state(operator) == "2,3");
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
    assert_eq!(code, Some(1));
    assert!(text.contains("'soon' is not a duration"), "{text}");
}

/// Nothing bounds its time, but it can be seen which task its queue waits for.
#[test]
fn a_hook_that_does_not_end_is_seen_from_outside() {
    let config = "configVersion: v1\nonStartup: 1";
    let setup = Setup::new(shared()).flag("--shutdown-timeout=1s");
    let mut operator = setup.hook("endless", config, "touch $OUT/begun; exec sleep 1000").start();
    let blocked = |operator: &Operator| {
        let text = operator.get("/metrics").unwrap_or_default();
        let name = r#"shell_operator_tasks_queue_head_seconds{queue="main"} "#;
        let value = text.lines().find_map(|line| line.strip_prefix(name));
        value.and_then(|value| value.parse::<f64>().ok()).is_some_and(|seconds| seconds > 0.0)
    };
    operator.wait_for("the run", |operator| operator.out().join("begun").exists() && blocked(operator));
    operator.stop();
}
