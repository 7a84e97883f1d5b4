//! The objects of the API that the file is written from.

use std::path::Path;

use kk_cluster::parse_yaml;
use kk_config::KubeVersion;
use serde_json::Value;

use crate::commands::kubectl::{self, Failure, items};
use crate::error::Error;

/// The answer of kubectl, as JSON.
#[derive(Debug, Default)]
pub(super) struct Answers {
    pub(super) nodes: Value,
    /// `kubeadm-config`, `kubelet-config` and `kube-proxy` of kube-system, as far as they exist.
    pub(super) configs: Value,
    pub(super) daemon_sets: Value,
    /// The pods of kube-system.
    pub(super) pods: Value,
    /// `kube-flannel-cfg` or `calico-config`, or null.
    pub(super) plugin: Value,
}

const SYSTEM: &str = "kube-system";

impl Answers {
    pub(super) async fn ask(kubeconfig: Option<&Path>) -> Result<Self, Error> {
        let get = async |what: &str, words: &[&str]| {
            kubectl::get(kubeconfig, words).await.map_err(|failure| failed(kubeconfig, what, failure))
        };
        // The first answer shows whether the API can be reached, so that only one request waits for it.
        let nodes = get("nodes", &["nodes"]).await?;
        let configs = [
            "-n",
            SYSTEM,
            "configmaps",
            "kubeadm-config",
            "kubelet-config",
            "kube-proxy",
            "--ignore-not-found",
        ];
        let (configs, daemon_sets, pods) = tokio::try_join!(
            get("settings in kube-system", &configs),
            get("DaemonSets", &["daemonsets", "-A"]),
            get("pods of kube-system", &["pods", "-n", SYSTEM]),
        )?;
        let mut answers = Self { nodes, configs, daemon_sets, pods, plugin: Value::Null };
        for (set, config) in [("kube-flannel-ds", "kube-flannel-cfg"), ("calico-node", "calico-config")] {
            if let Some(set) = answers.daemon_set(set) {
                let namespace = set["metadata"]["namespace"].as_str().unwrap_or(SYSTEM).to_owned();
                let words = ["-n", &*namespace, "configmap", config, "--ignore-not-found"];
                answers.plugin = get("settings of the network", &words).await?;
            }
        }
        Ok(answers)
    }

    pub(super) fn daemon_set(&self, name: &str) -> Option<&Value> {
        items(&self.daemon_sets).find(|set| set["metadata"]["name"] == name)
    }

    /// The pods of kube-system whose names begin like this.
    pub(super) fn pods_of(&self, prefix: &str) -> impl Iterator<Item = &Value> {
        items(&self.pods)
            .filter(move |pod| pod["metadata"]["name"].as_str().is_some_and(|name| name.starts_with(prefix)))
    }

    /// The number of these pods that a controller counts: no failed, completed or leaving ones.
    pub(super) fn replicas_of(&self, prefix: &str) -> usize {
        let counts = |pod: &&Value| {
            let ended =
                ["Failed", "Succeeded"].contains(&pod["status"]["phase"].as_str().unwrap_or_default());
            !ended && pod["metadata"]["deletionTimestamp"].is_null()
        };
        self.pods_of(prefix).filter(counts).count()
    }

    /// A pod that a kubelet runs from a file.
    pub(super) fn static_pod(&self, prefix: &str) -> Option<&Value> {
        self.pods_of(prefix).find(|pod| {
            let mut owners = pod["metadata"]["ownerReferences"].as_array().into_iter().flatten();
            owners.any(|owner| owner["kind"] == "Node")
        })
    }

    /// A document in a `ConfigMap` of kube-system. `None` if it does not exist.
    ///
    /// # Errors
    /// It cannot be read.
    pub(super) fn config(&self, name: &str, key: &str) -> Result<Option<Value>, String> {
        let found = items(&self.configs).find(|config| config["metadata"]["name"] == name);
        let Some(text) = found.and_then(|config| config["data"][key].as_str()) else { return Ok(None) };
        parse_yaml(text).map(Some).map_err(|why| format!("{key} of the ConfigMap {name}: {why}"))
    }

    /// The cluster-wide settings of kubeadm, and the version of Kubernetes in them.
    ///
    /// # Errors
    /// The cluster was not made by kubeadm, or kk does not support its version.
    pub(super) fn kubeadm(&self) -> Result<(Value, KubeVersion), Error> {
        let by_hand =
            "write the file by hand; `kk create config` without --from-cluster gives one to start from";
        let config = self.config("kubeadm-config", "ClusterConfiguration");
        let config = config.map_err(|why| {
            Error::config(format!("cannot read the settings of the cluster: {why}"), Some(by_hand.to_owned()))
        })?;
        let Some(config) = config else {
            let message = "kubeadm did not make this cluster: kube-system has no ConfigMap kubeadm-config";
            return Err(Error::config(message, Some(by_hand.to_owned())));
        };
        let version = config["kubernetesVersion"].as_str().unwrap_or_default();
        match version.parse::<KubeVersion>() {
            Ok(parsed) if parsed.is_supported() => Ok((config, parsed)),
            _ => {
                let (oldest, newest) = (kk_config::OLDEST_MINOR, kk_config::NEWEST_MINOR);
                let message =
                    format!("kk does not support the version `{version}` of the cluster's Kubernetes");
                let hint = format!(
                    "upgrade the cluster with the program that made it: kk supports Kubernetes 1.{oldest} to 1.{newest}"
                );
                Err(Error::config(message, Some(hint)))
            }
        }
    }
}

fn failed(kubeconfig: Option<&Path>, what: &str, failure: Failure) -> Error {
    match failure {
        Failure::NotStarted(why) => Error::config(
            format!("cannot run kubectl to query the cluster: {why}"),
            Some("put kubectl into a directory of PATH".to_owned()),
        ),
        Failure::NoAnswer(why) => {
            let of = kubeconfig.map_or_else(String::new, |file| format!(" of {}", file.display()));
            let hint = if why.contains("orbidden") {
                "use the kubeconfig of an administrator, such as /etc/kubernetes/admin.conf of a control plane"
            } else {
                "`kubectl get nodes` must work with the same kubeconfig: specify another one with --kubeconfig"
            };
            Error::config(format!("cannot get the {what} of the cluster{of}: {why}"), Some(hint.to_owned()))
        }
    }
}
