//! A stand-in for the controller of plans of KubeSphere 4.1.3, with the tested behaviour of that controller:
//! - It ignores a version that is not published.
//! - It never retries a failed release until the hash of its values or its version changes.
//! - It takes the state from helm's releases, unless it has noted a later state.
//!
//! A Secret represents the work of helm, and a Job exists while helm runs.
//!
//! Its clock is far behind the clock of the test.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use ks_installer::api::{Api, Id};
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use crate::cluster::lab::Lab;

const GROUP: &str = "kubesphere.io/v1alpha1";
const FINALIZER: &str = "kubesphere.io/installplan-protection";

/// What dies during an action, and when.
pub(super) enum Death {
    /// The controller, before its Job begins.
    Before,
    /// The Job, after it was noted.
    After,
}

/// Planned failures and recorded actions.
#[derive(Default)]
pub(super) struct Fate {
    /// Number of the next Jobs that fail, by release.
    pub(super) failures: BTreeMap<String, u32>,
    /// What dies with the next Job, by release.
    pub(super) dies: BTreeMap<String, Death>,
    /// Clusters that KubeSphere knows.
    pub(super) clusters: BTreeSet<String>,
    /// Actions that were begun, such as `install x 1.0.0`.
    pub(super) begun: Vec<String>,
    /// The running Jobs.
    jobs: BTreeSet<String>,
    /// Its clock in seconds.
    seconds: i64,
}

/// The controller runs while this value exists.
pub(super) struct Controller {
    fate: Arc<Mutex<Fate>>,
    task: JoinHandle<()>,
}

impl Drop for Controller {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Controller {
    /// Starts a controller for the plans whose names begin with the name of the lab.
    pub(super) async fn start(lab: &Lab) -> Self {
        let fate = Arc::new(Mutex::new(Fate::default()));
        let (api, prefix) = (lab.api().await, format!("{}-", lab.name));
        let work = Work { api, namespace: lab.name.clone(), fate: fate.clone() };
        let task = tokio::spawn(async move {
            loop {
                // An API server may not respond just after it received the kind.
                for plan in work.api.list(&id("InstallPlan", ""), "").await.unwrap_or_default() {
                    if Id::of(&plan).name.starts_with(&prefix) {
                        work.reconcile(&plan).await;
                    }
                }
                tokio::time::sleep(Duration::from_millis(30)).await;
            }
        });
        Self { fate, task }
    }

    pub(super) fn fate(&self) -> MutexGuard<'_, Fate> {
        self.fate.lock().unwrap()
    }

    /// Actions that were begun since the last call.
    pub(super) fn begun(&self) -> Vec<String> {
        std::mem::take(&mut self.fate().begun)
    }
}

struct Work {
    api: Arc<Api>,
    namespace: String,
    fate: Arc<Mutex<Fate>>,
}

/// An extension, or its part in a cluster.
struct Part<'a> {
    plan: &'a Value,
    cluster: Option<&'a str>,
    status: Value,
}

impl<'a> Part<'a> {
    fn of(plan: &'a Value, cluster: Option<&'a str>) -> Self {
        let status =
            cluster.map_or(&plan["status"], |name| &plan["status"]["clusterSchedulingStatuses"][name]);
        Self { plan, cluster, status: status.clone() }
    }

    fn name(&self) -> &'a str {
        self.plan["metadata"]["name"].as_str().unwrap()
    }

    fn release(&self) -> String {
        match self.cluster {
            None => self.name().to_owned(),
            // The test has one cluster, so the records of other clusters have another name.
            Some("host") => format!("{}-agent", self.name()),
            Some(other) => format!("{}-agent.{other}", self.name()),
        }
    }

    fn version(&self) -> &'a str {
        self.plan["spec"]["extension"]["version"].as_str().unwrap()
    }

    fn hash(&self) -> String {
        fnv(self.plan["spec"]["config"].as_str().unwrap_or_default().as_bytes())
    }

    fn state(&self) -> &str {
        self.status["state"].as_str().unwrap_or_default()
    }

    fn is_changed(&self) -> bool {
        let installed = self.status["version"].as_str().unwrap_or_default();
        self.status["configHash"] != self.hash() || !installed.is_empty() && installed != self.version()
    }

    /// Notes a state with its time, unless a later state is noted.
    fn note(&mut self, state: &str, time: &str) {
        let mut history = self.status["stateHistory"].as_array().cloned().unwrap_or_default();
        if let Some(last) = history.last()
            && (last["state"] == state || time < last["lastTransitionTime"].as_str().unwrap())
        {
            return;
        }
        history.push(json!({"state": state, "lastTransitionTime": time}));
        self.status["stateHistory"] = history.into();
        self.status["state"] = state.into();
    }
}

impl Work {
    async fn reconcile(&self, plan: &Value) {
        let main = Part::of(plan, None);
        let published = format!("{}-{}", main.name(), main.version());
        if !matches!(self.api.get(&id("ExtensionVersion", &published)).await, Ok(Some(_))) {
            return;
        }
        let parts = plan["status"]["clusterSchedulingStatuses"].as_object();
        let parts: Vec<&str> = parts.into_iter().flatten().map(|(cluster, _)| cluster.as_str()).collect();
        if plan["metadata"]["deletionTimestamp"].is_string() {
            for cluster in &parts {
                self.remove(Part::of(plan, Some(cluster))).await;
            }
            if parts.is_empty() {
                self.remove(main).await;
            }
            return;
        }
        if plan["metadata"]["finalizers"].is_null() {
            return self.merge(main.name(), json!({"metadata": {"finalizers": [FINALIZER]}})).await;
        }
        let is_installed = main.state() == "Installed";
        self.install(main).await;
        let placed = plan["spec"]["clusterScheduling"]["placement"]["clusters"].as_array();
        let known = self.fate.lock().unwrap().clusters.clone();
        for cluster in placed.into_iter().flatten().filter_map(Value::as_str) {
            if is_installed && known.contains(cluster) {
                self.install(Part::of(plan, Some(cluster))).await;
            }
        }
    }

    async fn install(&self, mut part: Part<'_>) {
        self.sync(&mut part).await;
        match part.state() {
            "" => self.begin(&mut part, "install", "Installing").await,
            "InstallFailed" if part.is_changed() => self.begin(&mut part, "install", "Installing").await,
            "Installed" | "UpgradeFailed" if part.is_changed() => {
                self.begin(&mut part, "upgrade", "Upgrading").await;
            }
            "Installing" | "Upgrading" if self.ends(&part).await => {
                let release = part.release();
                if self.fails(&release) || self.is_pending(&release).await {
                    let failed = if part.state() == "Installing" { "InstallFailed" } else { "UpgradeFailed" };
                    part.note(failed, &self.now());
                    part.status["conditions"] = condition("Installed", "no such image");
                } else {
                    self.record(&release, "deployed", &self.now()).await;
                    part.status["conditions"] = Value::Null;
                }
            }
            _ => {}
        }
        self.write(&part).await;
    }

    /// Begins a Job for an installation or an upgrade.
    async fn begin(&self, part: &mut Part<'_>, verb: &str, state: &str) {
        let release = part.release();
        self.fate.lock().unwrap().begun.push(format!("{verb} {release} {}", part.version()));
        part.status["targetNamespace"] = self.namespace.clone().into();
        part.note("Preparing", &self.now());
        if self.job(part, &release).await {
            part.status["version"] = part.version().into();
            part.status["configHash"] = part.hash().into();
            part.status["releaseName"] = release.into();
            part.note(state, &self.now());
        }
    }

    async fn remove(&self, mut part: Part<'_>) {
        let (name, release) = (part.name(), part.release());
        let record = self.api.get(&self.record_id(&release)).await.unwrap();
        if part.status["releaseName"].is_null() || record.is_none() {
            let gone = match part.cluster {
                None => json!({"metadata": {"finalizers": null}}),
                Some(cluster) => json!({"status": {"clusterSchedulingStatuses": {cluster: null}}}),
            };
            return self.merge(name, gone).await;
        }
        self.sync(&mut part).await;
        match part.state() {
            "Uninstalling" if self.ends(&part).await => {
                if self.fails(&release) {
                    part.note("UninstallFailed", &self.now());
                    part.status["conditions"] = condition("Uninstalled", "a hook failed");
                } else {
                    self.api.delete(&self.record_id(&release), "").await.unwrap();
                }
            }
            "UninstallFailed" | "Uninstalling" => {}
            _ => {
                self.fate.lock().unwrap().begun.push(format!("uninstall {release}"));
                self.job(&mut part, &release).await;
                part.note("Uninstalling", &self.now());
                // Helm does not record another time.
                let time = record.unwrap()["metadata"]["annotations"]["deployed"].clone();
                self.record(&release, "uninstalling", time.as_str().unwrap()).await;
            }
        }
        self.write(&part).await;
    }

    /// Takes the state from helm's release.
    async fn sync(&self, part: &mut Part<'_>) {
        let record = self.api.get(&self.record_id(&part.release())).await.unwrap();
        let Some(metadata) = record.map(|record| record["metadata"].clone()) else { return };
        let state = if metadata["labels"]["status"] == "deployed" { "Installed" } else { "Uninstalling" };
        part.note(state, metadata["annotations"]["deployed"].as_str().unwrap());
    }

    /// Begins a Job and notes its name. Returns `false` if the controller dies before.
    async fn job(&self, part: &mut Part<'_>, release: &str) -> bool {
        let death = self.fate.lock().unwrap().dies.remove(release);
        if matches!(death, Some(Death::Before)) {
            return false;
        }
        self.now();
        let name = format!("helm-{release}-{}", self.fate.lock().unwrap().seconds);
        part.status["jobName"] = name.clone().into();
        if death.is_none() {
            let container = json!({"name": "helm", "image": "helm"});
            let pod = json!({"restartPolicy": "Never", "containers": [container]});
            let job = json!({
                "apiVersion": "batch/v1", "kind": "Job", "spec": {"template": {"spec": pod}},
                "metadata": {
                    "name": name, "namespace": self.namespace,
                    "labels": {"kubesphere.io/extension-ref": part.name()},
                },
            });
            self.api.apply(&job, false).await.unwrap();
            self.fate.lock().unwrap().jobs.insert(name);
        }
        true
    }

    /// Whether the Job of a part ends now. An ended Job is deleted at once.
    async fn ends(&self, part: &Part<'_>) -> bool {
        let job = part.status["jobName"].as_str().unwrap_or_default();
        let ended = self.fate.lock().unwrap().jobs.remove(job);
        if ended {
            self.api.delete(&Id::new("batch/v1", "Job", &self.namespace, job), "").await.unwrap();
        }
        ended
    }

    fn record_id(&self, release: &str) -> Id {
        Id::new("v1", "Secret", &self.namespace, &format!("sh.helm.release.v1.{release}.v1"))
    }

    async fn record(&self, release: &str, status: &str, deployed: &str) {
        let secret = json!({
            "apiVersion": "v1", "kind": "Secret", "type": "helm.sh/release.v1",
            "metadata": {
                "name": self.record_id(release).name, "namespace": self.namespace,
                "labels": {"owner": "helm", "name": release, "status": status},
                "annotations": {"deployed": deployed},
            },
        });
        self.api.apply(&secret, false).await.unwrap();
    }

    /// Whether helm has an unfinished operation.
    async fn is_pending(&self, release: &str) -> bool {
        let all = Id::new("v1", "Secret", &self.namespace, "");
        let records = self.api.list(&all, &format!("labelSelector=owner=helm,name={release}")).await.unwrap();
        let mut status = records.iter().filter_map(|one| one["metadata"]["labels"]["status"].as_str());
        status.any(|status| status.starts_with("pending-"))
    }

    fn fails(&self, release: &str) -> bool {
        let mut fate = self.fate.lock().unwrap();
        let left = fate.failures.get_mut(release).filter(|left| **left > 0);
        left.map(|left| *left -= 1).is_some()
    }

    /// Each call returns a later time.
    fn now(&self) -> String {
        let mut fate = self.fate.lock().unwrap();
        fate.seconds += 2;
        let (hours, minutes) = (fate.seconds / 3600, fate.seconds / 60 % 60);
        format!("2026-01-01T{hours:02}:{minutes:02}:{:02}Z", fate.seconds % 60)
    }

    async fn write(&self, part: &Part<'_>) {
        let before = Part::of(part.plan, part.cluster).status;
        let mut changed = part.status.clone();
        let Some(fields) = changed.as_object_mut() else { return };
        fields.retain(|key, value| before[key] != *value);
        if fields.is_empty() {
            return;
        }
        let status = match part.cluster {
            None => changed,
            Some(cluster) => json!({"clusterSchedulingStatuses": {cluster: changed}}),
        };
        self.merge(part.name(), json!({ "status": status })).await;
    }

    async fn merge(&self, name: &str, change: Value) {
        // The plan may be deleted by now.
        let _ = self.api.merge(&id("InstallPlan", name), "", &change).await;
    }
}

fn id(kind: &str, name: &str) -> Id {
    Id::new(GROUP, kind, "", name)
}

/// The condition of a failure.
fn condition(kind: &str, message: &str) -> Value {
    let (time, reason) = ("2026-01-01T00:00:00Z", "Failed");
    json!([{"type": kind, "status": "False", "reason": reason, "message": message, "lastTransitionTime": time}])
}

/// 64-bit FNV-1a.
fn fnv(bytes: &[u8]) -> String {
    let mut hash: u64 = 14_695_981_039_346_656_037;
    for byte in bytes {
        hash = (hash ^ u64::from(*byte)).wrapping_mul(1_099_511_628_211);
    }
    format!("{hash:016x}")
}
