//! Gives each test its own namespace on a shared API server, and a payload made of texts.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};

use ks_installer::api::Api;
use ks_installer::engine::{Backoff, Engine, Goal, Inventory, Phase, Report, Suspects};
use ks_installer::payload;
use ks_installer::render::{Nodes, Renderer};
use serde_json::Value;
use shell_operator::cluster::{ClientSettings, install_crypto_provider};
use tempfile::TempDir;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

use crate::cluster::control_plane::ControlPlane;
use crate::cluster::{audit, programs};

/// Time limit for every operation, because a busy machine is slow.
pub(crate) const LIMIT: Duration = Duration::from_secs(90);

/// The API server of all tests.
pub(crate) fn plane() -> &'static ControlPlane {
    static PLANE: OnceLock<Option<ControlPlane>> = OnceLock::new();
    let start = || std::panic::catch_unwind(start).ok();
    // A failed start is not repeated by every test.
    PLANE
        .get_or_init(start)
        .as_ref()
        .expect("the control plane did not start; the first failed test says why")
}

fn start() -> ControlPlane {
    let plane = ControlPlane::start_with(&audit::arguments());
    // The cluster of a user with an older installer. Its objects may contain any field.
    let open = "{type: object, x-kubernetes-preserve-unknown-fields: true}";
    plane.apply(&format!(
        "{{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {{name: clusterconfigurations.installer.kubesphere.io}}, \
         spec: {{group: installer.kubesphere.io, scope: Namespaced, names: {{kind: ClusterConfiguration, plural: clusterconfigurations, \
         singular: clusterconfiguration, shortNames: [cc]}}, versions: [{{name: v1alpha1, served: true, storage: true, \
         schema: {{openAPIV3Schema: {{type: object, properties: {{spec: {open}, status: {open}}}}}}}}}]}}}}"
    ));
    plane.kubectl("create namespace op-wrong");
    let until = Instant::now() + LIMIT;
    let old = "{apiVersion: installer.kubesphere.io/v1alpha1, kind: ClusterConfiguration, \
               metadata: {name: ks-installer, namespace: op-wrong}, spec: {devops: 'yes'}}";
    while plane.try_kubectl(&format!("apply -f - <<< \"{old}\"")).is_err() {
        assert!(Instant::now() < until, "the kind does not become known");
        std::thread::sleep(Duration::from_millis(100));
    }
    plane.kubectl(concat!("apply -f ", env!("CARGO_MANIFEST_DIR"), "/../../deploy/ks-installer/crd.yaml"));
    plane
}

/// Environment of one test.
pub(crate) struct Lab {
    /// Name of its namespace, and of the user in its requests.
    pub(crate) name: String,
    payload: TempDir,
}

impl Lab {
    /// Creates a namespace and a payload of these files. `NS` in them is replaced by the namespace.
    pub(crate) fn new(name: &str, files: &[(&str, &str)]) -> Self {
        // One of the namespaces already exists.
        plane().apply(&format!("{{apiVersion: v1, kind: Namespace, metadata: {{name: {name}}}}}"));
        let lab = Self { name: name.to_owned(), payload: TempDir::new().unwrap() };
        lab.payload_of(files);
        lab
    }

    /// Writes or changes files of the payload.
    pub(crate) fn payload_of(&self, files: &[(&str, &str)]) {
        for (path, text) in files {
            let path = self.payload.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text.replace("NS", &self.name)).unwrap();
        }
        payload::build(self.payload.path(), "1", "v3.4.1").unwrap();
    }

    /// Removes a file from the payload before other files are written.
    pub(crate) fn remove_from_payload(&self, path: &str) {
        std::fs::remove_file(self.payload.path().join(path)).unwrap();
    }

    pub(crate) fn payload_dir(&self) -> &Path {
        self.payload.path()
    }

    /// A kubeconfig that identifies the requests of this test.
    pub(crate) fn kubeconfig(&self) -> PathBuf {
        let text = std::fs::read_to_string(plane().kubeconfig()).unwrap();
        let who = format!("user: {{as: {}, as-groups: ['system:masters'], ", self.name);
        let path = self.payload.path().with_extension("kubeconfig");
        std::fs::write(&path, text.replace("user: {client", &format!("{who}client"))).unwrap();
        path
    }

    pub(crate) async fn api(&self) -> Arc<Api> {
        install_crypto_provider();
        let settings = ClientSettings { kubeconfig: Some(self.kubeconfig()), ..ClientSettings::default() };
        Arc::new(Api::connect(&settings).await.unwrap())
    }

    /// A new engine, as after a restart.
    pub(crate) async fn engine(&self) -> Engine {
        let api = self.api().await;
        let renderer = Renderer {
            payload: Arc::new(payload::Payload::open(self.payload.path()).unwrap()),
            helm: programs::find("helm-", "helm"),
            kubernetes: api.version().await.unwrap(),
            nodes: Nodes::default(),
        };
        let engine = Engine::open(api, renderer, &self.name).await.unwrap();
        engine.with_backoff(Backoff::new(Duration::from_millis(50), Duration::from_millis(500)))
    }

    /// Output of kubectl in this namespace.
    pub(crate) fn kubectl(&self, line: &str) -> String {
        plane().kubectl(&format!("-n {} {line}", self.name)).trim().to_owned()
    }

    /// Whether an object exists.
    pub(crate) fn has(&self, what: &str) -> bool {
        !self.kubectl(&format!("get {what} --ignore-not-found -o name")).is_empty()
    }

    pub(crate) fn apply(&self, yaml: &str) {
        plane().apply(&yaml.replace("NS", &self.name));
    }
}

/// Records all reported phases.
#[derive(Default)]
pub(crate) struct Told(Mutex<Vec<(String, Phase)>>);

impl Report for Told {
    fn tell(&self, component: &str, phase: Phase) {
        self.0.lock().unwrap().push((component.to_owned(), phase));
    }
}

impl Told {
    /// The last reported phase of a component.
    pub(crate) fn last(&self, component: &str) -> Option<Phase> {
        let told = self.0.lock().unwrap();
        told.iter().rev().find(|(of, _)| of == component).map(|(_, phase)| phase.clone())
    }

    /// The failure of a component, if it is the last reported phase.
    pub(crate) fn failure(&self, component: &str) -> Option<String> {
        match self.last(component) {
            Some(Phase::Failed(failure)) => Some(format!("{}: {failure}", failure.reason.as_str())),
            _ => None,
        }
    }

    /// Whether a component failed with this text at any time.
    pub(crate) fn failed_with(&self, component: &str, words: &str) -> bool {
        let told = self.0.lock().unwrap();
        told.iter().any(|(of, phase)| {
            of == component && matches!(phase, Phase::Failed(failure) if failure.message.contains(words))
        })
    }

    /// Components in the order in which they became ready or were removed.
    pub(crate) fn ended(&self) -> Vec<String> {
        let told = self.0.lock().unwrap();
        let ended = told.iter().filter(|(_, phase)| matches!(phase, Phase::Ready | Phase::Removed));
        ended.map(|(name, _)| name.clone()).collect()
    }
}

/// A channel without later suspects.
pub(crate) fn no_more() -> UnboundedReceiver<Suspects> {
    unbounded_channel().1
}

/// Runs a whole pass.
pub(crate) async fn pass(engine: &Engine, spec: &Value, suspects: &[&str]) -> Told {
    let (told, suspects) =
        (Told::default(), suspects.iter().map(|name| (*name).to_owned()).collect::<Suspects>());
    let mut more = no_more();
    let done = tokio::time::timeout(LIMIT, engine.pass(Goal::Have(spec), &suspects, &mut more, &told)).await;
    assert!(done.is_ok(), "the pass does not end: {:?}", told.0.lock().unwrap());
    told
}

/// Runs a pass until `seen` returns true. It panics if that does not happen.
pub(crate) async fn pass_until(
    engine: &Engine,
    spec: &Value,
    told: &Told,
    what: &str,
    seen: impl Fn(&Told) -> bool,
) {
    let (suspects, mut more) = (Suspects::new(), no_more());
    let look = async {
        while !seen(told) {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::select! {
        () = engine.pass(Goal::Have(spec), &suspects, &mut more, told) => assert!(seen(told), "the pass ended without {what}"),
        () = look => {}
        () = tokio::time::sleep(LIMIT) => panic!("{what} did not happen: {:?}", told.0.lock().unwrap()),
    }
}

/// Kind, namespace, name and origin of all objects in an inventory.
pub(crate) fn entries(inventory: &Inventory) -> Vec<String> {
    let mut entries: Vec<String> =
        inventory.objects.iter().map(|entry| format!("{} {:?}", entry.id, entry.origin)).collect();
    entries.sort();
    entries
}
