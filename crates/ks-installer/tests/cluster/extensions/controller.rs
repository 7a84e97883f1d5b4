//! A stand-in for the controller of plans of KubeSphere 4.1.3. It does as that one does about what is tested here: it does nothing about a version
//! that is not published, leaves what has failed until the hash of its values or its version is another, and never looks
//! again at what is at work by its own notes. What helm would do is a Secret.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use ks_installer::api::{Api, Id};
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use crate::lab::Lab;

const GROUP: &str = "kubesphere.io/v1alpha1";
const FINALIZER: &str = "kubesphere.io/installplan-protection";

/// What happens to whom.
#[derive(Default)]
pub(super) struct Fate {
    /// How many of the next Jobs fail, by extension.
    pub(super) failures: BTreeMap<String, u32>,
    /// Extensions of which the controller dies before their Job begins.
    pub(super) dies: BTreeSet<String>,
    /// What was begun, like `install x 1.0.0`.
    pub(super) begun: Vec<String>,
}

/// It runs while this lives.
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
    /// One that sees the plans whose names begin with that of the lab.
    pub(super) async fn start(lab: &Lab) -> Self {
        let fate = Arc::new(Mutex::new(Fate::default()));
        let (api, prefix) = (lab.api().await, format!("{}-", lab.name));
        let work = Work { api, namespace: lab.name.clone(), fate: fate.clone() };
        let task = tokio::spawn(async move {
            loop {
                // An API server that has just got the kind may not answer.
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

    /// What was begun since this was asked last.
    pub(super) fn begun(&self) -> Vec<String> {
        std::mem::take(&mut self.fate().begun)
    }
}

struct Work {
    api: Arc<Api>,
    namespace: String,
    fate: Arc<Mutex<Fate>>,
}

impl Work {
    async fn reconcile(&self, plan: &Value) {
        let name = plan["metadata"]["name"].as_str().unwrap();
        let version = plan["spec"]["extension"]["version"].as_str().unwrap();
        let published = self.api.get(&id("ExtensionVersion", &format!("{name}-{version}"))).await;
        if !matches!(published, Ok(Some(_))) {
            return;
        }
        let status = &plan["status"];
        let state = status["state"].as_str().unwrap_or_default();
        if plan["metadata"]["deletionTimestamp"].is_string() {
            return self.remove(plan, name, state).await;
        }
        if plan["metadata"]["finalizers"].is_null() {
            return self.merge(name, json!({"metadata": {"finalizers": [FINALIZER]}})).await;
        }
        let config = plan["spec"]["config"].as_str().unwrap_or_default();
        let hash = fnv(config.as_bytes());
        let found = status["configHash"].as_str().unwrap_or_default();
        let installed = status["version"].as_str().unwrap_or_default();
        let is_changed = found != hash || !installed.is_empty() && installed != version;
        match state {
            "" => self.begin(name, "install", version, &hash).await,
            "InstallFailed" if is_changed => self.begin(name, "install", version, &hash).await,
            "Installed" | "UpgradeFailed" if is_changed => self.begin(name, "upgrade", version, &hash).await,
            "Installing" | "Upgrading" if self.fails(name) => {
                let failed = if state == "Installing" { "InstallFailed" } else { "UpgradeFailed" };
                let status = json!({"state": failed, "conditions": condition("Installed", "no such image")});
                self.merge(name, json!({ "status": status })).await;
            }
            "Installing" | "Upgrading" => {
                let secret = json!({
                    "apiVersion": "v1", "kind": "Secret", "type": "helm.sh/release.v1",
                    "metadata": {
                        "name": format!("sh.helm.release.v1.{name}.v1"), "namespace": self.namespace,
                        "labels": {"owner": "helm", "name": name, "status": "deployed"},
                    },
                });
                self.api.apply(&secret, false).await.unwrap();
                self.merge(name, json!({"status": {"state": "Installed", "conditions": null}})).await;
            }
            _ => {}
        }
    }

    async fn begin(&self, name: &str, verb: &str, version: &str, hash: &str) {
        self.fate.lock().unwrap().begun.push(format!("{verb} {name} {version}"));
        if self.fate.lock().unwrap().dies.remove(name) {
            return self
                .merge(name, json!({"status": {"state": "Preparing", "targetNamespace": self.namespace}}))
                .await;
        }
        let state = if verb == "install" { "Installing" } else { "Upgrading" };
        let status = json!({
            "state": state, "version": version, "configHash": hash, "releaseName": name,
            "targetNamespace": self.namespace,
        });
        self.merge(name, json!({ "status": status })).await;
    }

    async fn remove(&self, plan: &Value, name: &str, state: &str) {
        if plan["status"]["releaseName"].is_null() {
            return self.merge(name, json!({"metadata": {"finalizers": null}})).await;
        }
        match state {
            "UninstallFailed" => {}
            "Uninstalling" if self.fails(name) => {
                let failed = condition("Uninstalled", "a hook failed");
                let status = json!({"state": "UninstallFailed", "conditions": failed});
                self.merge(name, json!({ "status": status })).await;
            }
            "Uninstalling" => {
                let record = format!("sh.helm.release.v1.{name}.v1");
                self.api.delete(&Id::new("v1", "Secret", &self.namespace, &record), "").await.unwrap();
                self.merge(name, json!({"metadata": {"finalizers": null}})).await;
            }
            _ => {
                self.fate.lock().unwrap().begun.push(format!("uninstall {name}"));
                self.merge(name, json!({"status": {"state": "Uninstalling"}})).await;
            }
        }
    }

    fn fails(&self, name: &str) -> bool {
        let mut fate = self.fate.lock().unwrap();
        let left = fate.failures.get_mut(name).filter(|left| **left > 0);
        left.map(|left| *left -= 1).is_some()
    }

    async fn merge(&self, name: &str, change: Value) {
        // The plan may be gone by now.
        let _ = self.api.merge(&id("InstallPlan", name), "", &change).await;
    }
}

fn id(kind: &str, name: &str) -> Id {
    Id::new(GROUP, kind, "", name)
}

/// The condition of what failed.
fn condition(kind: &str, message: &str) -> Value {
    let (time, reason) = ("2026-01-01T00:00:00Z", "Failed");
    json!([{"type": kind, "status": "False", "reason": reason, "message": message, "lastTransitionTime": time}])
}

/// FNV-1a of 64 bits.
fn fnv(bytes: &[u8]) -> String {
    let mut hash: u64 = 14_695_981_039_346_656_037;
    for byte in bytes {
        hash = (hash ^ u64::from(*byte)).wrapping_mul(1_099_511_628_211);
    }
    format!("{hash:016x}")
}
