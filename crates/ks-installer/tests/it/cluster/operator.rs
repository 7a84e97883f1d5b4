//! Tests the operator: its changes for an object, and its reports.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use ks_installer::engine::Backoff;
use ks_installer::operator::{Options, run};
use serde_json::Value;
use shell_operator::cluster::{ClientSettings, install_crypto_provider};
use shell_operator::operator::Settings;
use tokio_util::sync::CancellationToken;

use crate::cluster::control_plane::free_port;
use crate::cluster::lab::{LIMIT, Lab, plane};
use crate::cluster::{audit, programs};

const MAPS: &str = "\
statusKey: maps.inner
enabled: spec.maps.enabled
dependsOn: [core]
inputs: [maps]
namespace: NS
sources: [{manifests: manifests/maps.yaml}]
";
const CORE: &str =
    "statusKey: core\nenabled: 'true'\nnamespace: NS\nsources: [{manifests: manifests/core.yaml}]\n";
const FILES: [(&str, &str); 4] = [
    ("components/maps.yaml", MAPS),
    ("components/core.yaml", CORE),
    (
        "manifests/maps.yaml",
        "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {size: '{{ spec.maps.size | default(1) }}'}}\n\
         ---\n{apiVersion: v1, kind: ConfigMap, metadata: {name: b}}\n",
    ),
    ("manifests/core.yaml", "{apiVersion: v1, kind: ConfigMap, metadata: {name: core}}\n"),
];

/// A running operator.
struct Running {
    lines: Arc<Mutex<Vec<String>>>,
    stop: CancellationToken,
    port: u16,
    task: JoinHandle<anyhow::Result<()>>,
}

impl Running {
    fn start(lab: &Lab, leader_election: bool) -> Self {
        Self::start_with(lab, leader_election, Duration::from_mins(10))
    }

    /// Starts an operator with this interval between full checks.
    fn start_with(lab: &Lab, leader_election: bool, resync: Duration) -> Self {
        install_crypto_provider();
        let lines = Arc::new(Mutex::new(Vec::new()));
        let (stop, printed) = (CancellationToken::new(), lines.clone());
        let port = free_port();
        let client = ClientSettings { kubeconfig: Some(lab.kubeconfig()), ..ClientSettings::default() };
        let options = Options {
            operator: Settings { client, listen: Some(([127, 0, 0, 1], port).into()), ..Settings::default() },
            payload: lab.payload_dir().to_owned(),
            helm: programs::find("helm-", "helm"),
            namespace: lab.name.clone(),
            leader_election,
            running_file: Some(running_file(lab)),
            resync,
            revision: Some("of-the-test".to_owned()),
            backoff: Backoff::new(Duration::from_millis(100), Duration::from_secs(1)),
            print: Arc::new(move |line: &str| printed.lock().unwrap().push(line.to_owned())),
            stop: stop.clone(),
        };
        // The operator has its own runtime, as in the program.
        let work = move || tokio::runtime::Runtime::new().unwrap().block_on(run(options));
        Self { lines, stop, port, task: std::thread::spawn(work) }
    }

    fn said(&self, text: &str) -> bool {
        self.lines.lock().unwrap().iter().any(|line| line.contains(text))
    }

    /// The metrics as Prometheus reads them.
    fn metrics(&self) -> String {
        let mut text = String::new();
        if let Ok(mut server) = TcpStream::connect(("127.0.0.1", self.port)) {
            server.write_all(b"GET /metrics HTTP/1.0\r\n\r\n").unwrap();
            server.read_to_string(&mut text).unwrap();
        }
        text
    }

    async fn end(self) {
        self.stop.cancel();
        tokio::task::spawn_blocking(|| self.task.join()).await.unwrap().unwrap().unwrap();
    }
}

fn running_file(lab: &Lab) -> PathBuf {
    lab.payload_dir().with_extension("running")
}

/// Creates or changes the object.
fn configure(lab: &Lab, spec: &str) {
    lab.apply(&format!(
        "{{apiVersion: installer.kubesphere.io/v1alpha1, kind: ClusterConfiguration, metadata: {{name: ks-installer, namespace: NS}}, spec: {spec}}}"
    ));
}

fn object(lab: &Lab) -> Value {
    serde_json::from_str(&lab.kubectl("get cc ks-installer -o json")).unwrap()
}

/// Waits until a condition is true.
async fn eventually(what: &str, running: &Running, mut so: impl FnMut() -> bool) {
    let until = Instant::now() + LIMIT;
    while !so() {
        assert!(!running.task.is_finished(), "the operator ended: {:?}", running.lines.lock().unwrap());
        assert!(Instant::now() < until, "{what} did not happen: {:?}", running.lines.lock().unwrap());
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// Waits until the status is ready and describes the current object.
async fn ready(lab: &Lab, running: &Running) -> Value {
    let is_ready = || {
        let object = object(lab);
        let status = &object["status"];
        status["phase"] == "Ready"
            && status["revision"] == "of-the-test"
            && status["observedGeneration"] == object["metadata"]["generation"]
    };
    eventually("readiness", running, is_ready).await;
    object(lab)["status"].clone()
}

fn condition(status: &Value, kind: &str) -> Value {
    status["conditions"].as_array().unwrap().iter().find(|one| one["type"] == kind).unwrap().clone()
}

/// Writes of the operator since a position, except for the Lease, Events and its own objects.
fn writes(lab: &Lab, since: usize) -> Vec<String> {
    let mut writes = audit::writes(&audit::requests(&lab.name)[since..]);
    writes.retain(|write| !["leases", "events"].iter().any(|kind| write.contains(kind)));
    writes
}

#[tokio::test(flavor = "multi_thread")]
async fn the_object_is_what_happens_and_its_status_says_so() {
    let lab = Lab::new("op-life", &FILES);
    configure(&lab, "{maps: {enabled: true}, terminal: {timeout: 5}}");
    let running = Running::start(&lab, false);
    let status = ready(&lab, &running).await;
    assert_eq!(status["core"]["version"], "v3.4.1");
    assert_eq!(status["maps"]["inner"]["status"], "enabled");
    assert!(status["maps"]["inner"]["enabledTime"].as_str().unwrap().ends_with("UTC"), "{status}");
    assert_eq!(condition(&status, "Ready")["status"], "True");
    for text in ["Start installing maps", "task maps status is successful (2/2)", "Welcome to KubeSphere!"] {
        eventually(text, &running, || running.said(text)).await;
    }
    eventually("the file", &running, || running_file(&lab).exists()).await;

    // A changed field changes one object, and the status.
    let since = audit::requests("op-life").len();
    configure(&lab, "{maps: {enabled: true, size: 2}, terminal: {timeout: 5}}");
    ready(&lab, &running).await;
    let mut changed = writes(&lab, since);
    changed.retain(|write| !write.contains("clusterconfigurations"));
    assert_eq!(changed, ["patch configmaps/a"]);

    // Changes by other clients are reverted without a request.
    lab.kubectl("patch cm a --type=merge -p '{\"data\":{\"size\":\"9\"}}'");
    lab.kubectl("delete cm b");
    let size = || lab.kubectl("get cm a -o jsonpath='{.data.size}'");
    eventually("healing", &running, || size() == "2" && lab.has("cm/b")).await;

    // When the component is switched off, its entry is removed and the others stay.
    configure(&lab, "{maps: {enabled: false}, terminal: {timeout: 5}}");
    let status = ready(&lab, &running).await;
    assert!(status["maps"].is_null() && status["core"]["status"] == "enabled", "{status}");
    assert!(!lab.has("cm/a") && lab.has("cm/core"));

    // After a restart, there is nothing to do.
    running.end().await;
    let since = audit::requests("op-life").len();
    let running = Running::start(&lab, false);
    let reads =
        || audit::requests("op-life")[since..].iter().any(|request| request.starts_with("get cluster"));
    eventually("a look", &running, reads).await;
    lab.kubectl("annotate cc ks-installer look=again");
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(writes(&lab, since), [""; 0]);

    // The object is deleted last.
    lab.kubectl("delete cc ks-installer");
    assert!(!lab.has("cm/core") && !lab.has("secret -l installer.kubesphere.io/inventory"));
    running.end().await;
}

/// Requests of an idle operator after a change, except for the Lease.
#[tokio::test(flavor = "multi_thread")]
async fn a_change_that_no_component_reads_costs_a_look_at_the_object_and_its_status() {
    let lab = Lab::new("op-cost", &FILES);
    configure(&lab, "{maps: {enabled: true}}");
    let running = Running::start(&lab, true);
    ready(&lab, &running).await;
    eventually("the end of the pass", &running, || running.said("Welcome to KubeSphere!")).await;
    // Until then, all short-lived caches have expired, such as the list of kinds.
    tokio::time::sleep(Duration::from_secs(6)).await;
    let since = audit::requests("op-cost").len();
    let welcomes = || running.lines.lock().unwrap().iter().filter(|line| line.contains("Welcome")).count();
    let said = welcomes();
    configure(&lab, "{maps: {enabled: true}, terminal: {timeout: 5}}");
    ready(&lab, &running).await;
    eventually("the lines", &running, || welcomes() > said).await;
    let mut asked = audit::requests("op-cost").split_off(since);
    asked.retain(|request| !request.contains(" leases/"));
    let object = "clusterconfigurations/ks-installer";
    // There is no console, so the result is not cached.
    let console = "get services/ks-console".to_owned();
    assert_eq!(asked, [format!("get {object}"), format!("patch {object}"), console]);
    running.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failing_component_is_named_in_the_status_beside_those_that_work() {
    let lab = Lab::new("op-fails", &FILES);
    lab.payload_of(&[(
        "manifests/maps.yaml",
        "{apiVersion: v1, kind: ConfigMap, metadata: {name: '{{ spec.maps.name }}'}}",
    )]);
    configure(&lab, "{maps: {enabled: true, name: Wrong_Name}}");
    let running = Running::start(&lab, false);
    // The next attempt begins seconds later.
    let seen = std::sync::Mutex::new(serde_json::Value::Null);
    eventually("the failure", &running, || {
        let status = object(&lab)["status"].clone();
        let has_failed = status["phase"] == "Failed";
        *seen.lock().unwrap() = status;
        has_failed
    })
    .await;
    let status = seen.into_inner().unwrap();
    let maps = &status["components"]["maps"];
    assert!(
        maps["reason"] == "Refused" && maps["message"].as_str().unwrap().contains("Wrong_Name"),
        "{status}"
    );
    assert_eq!(status["components"]["core"]["phase"], "Ready");
    assert!(status["core"]["version"].is_null() && status["maps"].is_null(), "{status}");
    assert_eq!(condition(&status, "Ready")["reason"], "Refused");
    let is_told = |component: &str, value: u8| {
        let line = format!("ks_installer_component_ready{{component=\"{component}\"");
        running
            .metrics()
            .lines()
            .any(|found| found.starts_with(&line) && found.ends_with(&format!(" {value}")))
    };
    eventually("metrics", &running, || is_told("core", 1) && is_told("maps", 0)).await;
    eventually("an Event", &running, || {
        lab.kubectl("get events -o jsonpath='{.items[*].reason}'").contains("Refused")
    })
    .await;
    assert!(running.said("task maps status is failed") && !running_file(&lab).exists());
    configure(&lab, "{maps: {enabled: true, name: right}}");
    let status = ready(&lab, &running).await;
    assert_eq!(status["core"]["version"], "v3.4.1");
    running.end().await;
}

/// A component that is never ready, because no node starts pods.
const NEVER: [(&str, &str); 2] = [
    (
        "components/never.yaml",
        "enabled: 'true'\nnamespace: NS\nreadyWithinSeconds: 2\nsources: [{manifests: manifests/never.yaml}]\n",
    ),
    (
        "manifests/never.yaml",
        "{apiVersion: apps/v1, kind: Deployment, metadata: {name: never}, spec: {selector: {matchLabels: {a: b}}, \
         template: {metadata: {labels: {a: b}}, spec: {containers: [{name: c, image: i}]}}}}",
    ),
];

#[tokio::test(flavor = "multi_thread")]
async fn what_others_change_is_healed_each_time_also_while_a_component_fails() {
    let lab = Lab::new("op-again", &[&FILES[..], &NEVER].concat());
    lab.payload_of(&[(
        "manifests/core.yaml",
        "{apiVersion: v1, kind: ConfigMap, metadata: {name: core}}\n\
         ---\n{apiVersion: v1, kind: Secret, metadata: {name: word}, stringData: {k: v}}\n",
    )]);
    configure(&lab, "{maps: {enabled: false}}");
    let running = Running::start_with(&lab, false, Duration::from_secs(5));
    eventually("the failure", &running, || object(&lab)["status"]["phase"] == "Failed").await;
    eventually("the others", &running, || lab.has("cm/core") && lab.has("secret/word")).await;
    for _ in 0..3 {
        lab.kubectl("delete cm core");
        eventually("healing", &running, || lab.has("cm/core")).await;
    }
    // Secrets are not watched.
    lab.kubectl("delete secret word");
    eventually("healing of a Secret", &running, || lab.has("secret/word")).await;
    running.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_object_that_changes_all_the_time_does_not_keep_others_from_their_end() {
    let lab = Lab::new("op-busy", &[&FILES[..], &NEVER].concat());
    configure(&lab, "{maps: {enabled: false}}");
    let running = Running::start(&lab, false);
    eventually("the object", &running, || lab.has("cm/core")).await;
    let mut number = 0;
    eventually("the failure", &running, || {
        number += 1;
        lab.kubectl(&format!("annotate --overwrite cm core number={number}"));
        object(&lab)["status"]["components"]["never"]["phase"] == "Failed"
    })
    .await;
    running.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plan_says_what_would_change_and_changes_nothing() {
    let lab = Lab::new("op-plan", &FILES);
    lab.apply("{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: NS}, data: {size: '7'}}");
    configure(&lab, "{mode: Plan, maps: {enabled: true}, monitorin: {enabled: true}}");
    let running = Running::start(&lab, false);
    eventually("the plan", &running, || object(&lab)["status"]["phase"] == "Planned").await;
    let status = object(&lab)["status"].clone();
    let plan = status["plan"].to_string();
    for line in
        ["core: + ConfigMap op-plan/core", "maps: + ConfigMap op-plan/b", "maps: ~ ConfigMap op-plan/a: "]
    {
        assert!(plan.contains(line), "{plan}");
    }
    assert!(plan.contains("data.size") && !lab.has("cm/b") && !lab.has("cm/core"), "{plan}");
    assert_eq!(condition(&status, "SpecValid")["reason"], "UnknownKeys");
    configure(&lab, "{mode: Apply, maps: {enabled: true}}");
    ready(&lab, &running).await;
    assert_eq!(lab.kubectl("get cm a -o jsonpath='{.data.size}'"), "1");
    running.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unknown_key_is_a_warning_and_keeps_nothing_from_its_end() {
    let lab = Lab::new("op-unknown", &FILES);
    configure(
        &lab,
        "{maps: {enabled: true, own: 1}, monitorin: {enabled: true}, etcd: {prot: 1}, rotate: {map: {a: b}}}",
    );
    let running = Running::start(&lab, false);
    let status = ready(&lab, &running).await;
    let valid = condition(&status, "SpecValid");
    assert_eq!((valid["status"].clone(), valid["reason"].clone()), ("True".into(), "UnknownKeys".into()));
    let message = valid["message"].as_str().unwrap();
    for key in ["spec.monitorin", "spec.etcd.prot", "spec.rotate.map"] {
        assert!(message.contains(key), "{key}: {message}");
    }
    assert!(!message.contains("own"), "what a component reads is known: {message}");
    configure(&lab, "{maps: {enabled: true}}");
    let status = ready(&lab, &running).await;
    assert_eq!(condition(&status, "SpecValid")["reason"], "AsExpected");
    running.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_old_spec_gets_the_names_of_today_in_place() {
    let lab = Lab::new("op-old", &FILES);
    configure(&lab, "{maps: {enabled: true}, console: {port: 30881}, networkpolicy: {enabled: false}}");
    let uid = object(&lab)["metadata"]["uid"].clone();
    let running = Running::start(&lab, false);
    ready(&lab, &running).await;
    let object = object(&lab);
    assert_eq!(object["metadata"]["uid"], uid);
    assert_eq!(object["spec"]["common"]["core"]["console"]["port"], 30881);
    assert!(object["spec"]["console"].is_null() && object["spec"]["networkpolicy"].is_null(), "{object}");
    assert!(running.said("migrated: console is common.core.console"));
    running.end().await;
}

/// The object is older than the schema. The API server would refuse it now.
#[tokio::test(flavor = "multi_thread")]
async fn a_spec_that_cannot_be_meant_is_named_and_nothing_is_done() {
    let lab = Lab::new("op-wrong", &FILES);
    let running = Running::start(&lab, false);
    eventually("the condition", &running, || object(&lab)["status"]["phase"] == "Invalid").await;
    let status = object(&lab)["status"].clone();
    assert_eq!(condition(&status, "SpecValid")["message"], "spec.devops must be an object, and is a string");
    assert!(!lab.has("cm/core"));
    let refused = plane()
        .try_kubectl("-n op-wrong patch cc ks-installer --type=merge -p '{\"spec\":{\"etcd\":\"yes\"}}'");
    assert!(refused.unwrap_err().contains("spec.etcd"));
    configure(&lab, "{devops: {enabled: false}}");
    ready(&lab, &running).await;
    running.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn one_of_two_operators_acts_and_the_other_takes_over() {
    let lab = Lab::new("op-two", &FILES);
    configure(&lab, "{maps: {enabled: true}}");
    let first = Running::start(&lab, true);
    ready(&lab, &first).await;
    let second = Running::start(&lab, true);
    configure(&lab, "{maps: {enabled: true, size: 2}}");
    ready(&lab, &first).await;
    assert!(!second.said("task "), "{:?}", second.lines.lock().unwrap());
    first.end().await;
    configure(&lab, "{maps: {enabled: true, size: 3}}");
    ready(&lab, &second).await;
    assert_eq!(lab.kubectl("get cm a -o jsonpath='{.data.size}'"), "3");
    assert!(second.said("task maps status is successful"));
    second.end().await;
}
