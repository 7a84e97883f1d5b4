//! Tests a removal with the lab's stand-in for KubeSphere's controllers on a separate API server. The script of its pod runs as a
//! process of the test.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use ks_installer::api::Api;
use ks_installer::engine::{Backoff, Engine, Goal, Phase, Suspects};
use ks_installer::payload::build;
use ks_installer::render::{Nodes, Renderer};
use serde_json::{Value, json};
use shell_operator::cluster::{ClientSettings, install_crypto_provider};
use tempfile::TempDir;

use crate::cluster::control_plane::ControlPlane;
use crate::cluster::lab::{LIMIT, Told, no_more};
use crate::cluster::programs;

/// The files of the lab's payload that need no node.
const PARTS: [&str; 6] = [
    "components/controller.yaml",
    "components/kinds.yaml",
    "components/namespace.yaml",
    "manifests/controller",
    "manifests/kinds",
    "manifests/namespace.yaml",
];
/// Kinds that the stand-in and the operator may change.
const KINDS: &str = "namespaces,configmaps,secrets,serviceaccounts,roles,rolebindings,clusterroles,clusterrolebindings,crds,\
    validatingadmissionpolicies,validatingadmissionpolicybindings,deployments";

/// A pod of the Deployment, which shows that the process runs. The finalizer keeps it until then, because the garbage collector
/// deletes pods without their `ReplicaSet`.
const POD: &str = "{apiVersion: v1, kind: Pod, metadata: {name: controller, namespace: ks-stand-in, labels: {app: stand-in-controller, pod-template-hash: 5c}, \
    ownerReferences: [{apiVersion: apps/v1, kind: ReplicaSet, name: stand-in-controller-5c, uid: 6f0c5a3e-7c1e-4a52-9a3b-1f2d3c4b5a69, \
    controller: true}], finalizers: [example.com/runs]}, \
    spec: {serviceAccountName: controller, automountServiceAccountToken: false, containers: [{name: c, image: i}]}}";

/// Time that the pod of the stand-in outlives its Deployment.
const OUTLIVES: Duration = Duration::from_secs(3);

/// The pod of the stand-in, which no node starts. It runs while its Deployment exists, and `OUTLIVES` longer.
struct Pod<'a> {
    plane: &'a ControlPlane,
    dir: TempDir,
    process: Option<Child>,
    gone_since: Option<Instant>,
}

impl Pod<'_> {
    /// Acts as the controllers and the node.
    fn look(&mut self) {
        let deployment = "-n ks-stand-in get deployment stand-in-controller --ignore-not-found -o name";
        let is_there = !self.plane.kubectl(deployment).is_empty();
        if !is_there && self.process.is_some() {
            if self.gone_since.get_or_insert_with(Instant::now).elapsed() < OUTLIVES {
                return;
            }
            self.end();
            let unhold = r#"patch pod controller --type=merge -p '{"metadata":{"finalizers":null}}'"#;
            self.plane.kubectl(&format!("-n ks-stand-in {unhold}"));
            self.plane.kubectl("-n ks-stand-in delete pod controller --force --grace-period=0 --ignore-not-found 2>/dev/null");
        } else if is_there && self.process.is_none() {
            self.plane.apply(POD);
            self.start();
            let status = r#"{"status":{"observedGeneration":99,"replicas":1,"updatedReplicas":1,"readyReplicas":1,"availableReplicas":1}}"#;
            let patch =
                "-n ks-stand-in patch deployment stand-in-controller --subresource=status --type=merge";
            self.plane.kubectl(&format!("{patch} -p '{status}'"));
        }
    }

    fn start(&mut self) {
        let script =
            self.plane.kubectl("-n ks-stand-in get configmap controller -o jsonpath='{.data.run\\.sh}'");
        let dir = self.dir.path().display();
        let kubectl = programs::find("kubernetes-", "kubectl");
        // The machine has all commands of busybox.
        let script = script
            .replace("b=/bin/busybox", "b=")
            .replace("/tmp/", &format!("{dir}/"))
            .replace("/kubectl ", &format!("{} ", kubectl.display()));
        let file = self.dir.path().join("run.sh");
        std::fs::write(&file, script).unwrap();
        let command = Command::new("sh")
            .arg(&file)
            .env("KUBECONFIG", self.plane.kubeconfig())
            .stdout(Stdio::null())
            .spawn();
        self.process = Some(command.unwrap());
    }

    fn end(&mut self) {
        if let Some(mut process) = self.process.take() {
            process.kill().unwrap();
            process.wait().unwrap();
        }
    }
}

impl Drop for Pod<'_> {
    fn drop(&mut self) {
        self.end();
    }
}

/// All objects, without the metadata that records who changed them and when.
fn dump(plane: &ControlPlane) -> Vec<String> {
    let list: Value = serde_json::from_str(&plane.kubectl(&format!("get {KINDS} -A -o json"))).unwrap();
    let still = |object: &Value| {
        let mut object = object.clone();
        object["status"].take();
        let metadata = object["metadata"].as_object_mut().unwrap();
        for key in ["managedFields", "resourceVersion", "generation"] {
            metadata.remove(key);
        }
        metadata.retain(|_, value| !value.as_object().is_some_and(serde_json::Map::is_empty));
        object.to_string()
    };
    let mut all: Vec<String> = list["items"].as_array().unwrap().iter().map(still).collect();
    all.sort();
    all
}

/// Runs a pass until it ends, and updates the pod during the pass.
async fn pass(engine: &Engine, goal: Goal<'_>, pod: &mut Pod<'_>) -> Told {
    let (told, suspects, mut more) = (Told::default(), Suspects::new(), no_more());
    let look = async {
        loop {
            pod.look();
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    };
    tokio::select! {
        () = engine.pass(goal, &suspects, &mut more, &told) => {}
        () = look => {}
        () = tokio::time::sleep(LIMIT) => panic!("the pass does not end: {:?} {:?}", told.last("controller"), told.last("namespace")),
    }
    told
}

#[tokio::test]
async fn all_is_as_before_when_controllers_have_come_and_gone() {
    install_crypto_provider();
    let plane = ControlPlane::start();
    let dir = TempDir::new().unwrap();
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/lab/ks-payload");
    for part in PARTS {
        let to = dir.path().join(part);
        std::fs::create_dir_all(to.parent().unwrap()).unwrap();
        assert!(Command::new("cp").arg("-r").args([&source.join(part), &to]).status().unwrap().success());
    }
    let settings = ClientSettings { kubeconfig: Some(plane.kubeconfig()), ..ClientSettings::default() };
    let api = Arc::new(Api::connect(&settings).await.unwrap());
    let payload = Arc::new(build(dir.path(), "1", "v3.4.1").unwrap());
    let kubernetes = api.version().await.unwrap();
    let renderer = Renderer { payload, helm: "none".into(), kubernetes, nodes: Nodes::default() };
    let engine = Engine::open(api, renderer, "kube-system").await.unwrap();
    let engine = engine.with_backoff(Backoff::new(Duration::from_millis(50), Duration::from_millis(500)));
    plane.kubectl("create namespace project");
    plane.kubectl("label namespace project kept=theirs");
    plane.kubectl("wait --for=create serviceaccount/default -n project --timeout=1s || :");
    let before = dump(&plane);
    let mut pod = Pod { plane: &plane, dir: TempDir::new().unwrap(), process: None, gone_since: None };

    let spec = json!({"stand_in": {"controller": "any"}, "metrics_server": {"enabled": true}});
    let told = pass(&engine, Goal::Have(&spec), &mut pod).await;
    assert_eq!(told.last("controller"), Some(Phase::Ready));
    plane.kubectl("label namespace project kubesphere.io/workspace=of-a-user");
    let until = Instant::now() + LIMIT;
    // The stand-in sets marks and creates roles within seconds.
    while plane.kubectl("get namespaces,roles -A -o yaml").matches("role-template: \"true\"").count() < 2
        || plane.kubectl("get namespaces -o jsonpath='{.items[*].metadata.finalizers}'").matches('[').count()
            < 6
    {
        assert!(Instant::now() < until, "the controller does not work");
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    assert!(
        plane.kubectl("-n ks-stand-in get configmap seen -o yaml").contains("gauges.stand-in.example.com")
    );
    assert_ne!(dump(&plane), before);

    let told = pass(&engine, Goal::Remove(&spec), &mut pod).await;
    assert_eq!(told.last("controller"), Some(Phase::Removed));
    assert_eq!(dump(&plane), before);
    plane.kubectl("delete namespace project --timeout=60s");
}
