//! Monitoring of KubeSphere 3.4.1 with metrics-server: installed, queried, switched off and on. The metrics of etcd are switched
//! off and on separately.

use anyhow::{Result, ensure};
use serde_json::{Value, json};

use super::super::full::MONITORING;
use super::super::image;
use super::super::remove::Dump;
use super::{EXPIRING, PATIENCE, Real};

/// Objects that stay when monitoring is switched off: the beginning of their name, and why.
const KEPT: [(&str, &str); 6] = [
    ("PersistentVolumeClaim kubesphere-monitoring-system/", "the spec of the scenario retains data"),
    ("PersistentVolume /pvc-", "volumes of these claims"),
    ("Secret kubesphere-monitoring-system/", "the spec of the scenario retains data"),
    ("Secret kubesphere-system/ks-installer-", "generated values and inventories"),
    ("LoginRecord /", "KubeSphere records each log-in of the scenario"),
    (EXPIRING, "Kubernetes deletes them after an hour"),
];

/// The spec with monitoring, and with or without the metrics of etcd.
pub(super) fn spec(etcd: bool) -> Value {
    json!({
        "etcd": {"monitoring": etcd},
        "metrics_server": {"enabled": true},
        // `dataPolicy` of the whole document deletes the volumes with KubeSphere.
        "monitoring": {"enabled": true, "dataPolicy": "Retain"},
    })
}

impl Real<'_> {
    /// A default `StorageClass`, which the scenario installs because the release contains none.
    pub(super) fn provides_volumes(&self) -> Result<()> {
        let (ctx, site) = (self.lab.ctx, &self.lab.site);
        ctx.apply(site, &image::local_volumes(ctx)?)?;
        ctx.kubectl(site, "-n default rollout status deployment local-volumes --timeout=120s").map(drop)
    }

    pub(super) fn monitors(&self) -> Result<()> {
        let lab = &self.lab;
        let on = self.with("monitoring", &spec(true))?;
        let before = lab.dump()?;
        self.create(&on)?;
        self.is_watched()?;
        lab.nothing_to_do(&on)?;

        self.create(&self.with("no-etcd", &spec(false))?)?;
        lab.targets_are("etcd", 0)?;
        let words = "-n kube-system get service,endpoints -l app.kubernetes.io/name=etcd -o name";
        let left = lab.ctx.kubectl(&lab.site, words)?;
        ensure!(left.trim().is_empty(), "objects of etcd's metrics are left: {left}");
        self.create(&on)?;
        lab.targets_are("etcd", 1)?;

        self.create(&self.core()?)?;
        self.leaves_nothing(&before)?;
        self.admin_logs_in()?;
        self.create(&on)?;
        self.is_watched()?;
        lab.nothing_to_do(&on)
    }

    /// Prometheus and Alertmanager are ready when `kk` reports it, Prometheus reaches its targets, and KubeSphere's API returns
    /// their data.
    fn is_watched(&self) -> Result<()> {
        for program in ["prometheus", "alertmanager"] {
            self.ready_pods(MONITORING, &format!("app.kubernetes.io/name={program}"))?;
        }
        let lab = &self.lab;
        let hosts = lab.site.hosts.len();
        // The kubelet has a target for itself and one for the containers of the node.
        for (job, expected) in [
            ("etcd", 1),
            ("ks-apiserver", 1),
            ("ks-controller-manager", 1),
            ("kubelet", 2 * hosts),
            ("node-exporter", hosts),
        ] {
            lab.targets_are(job, expected)?;
        }
        lab.nodes_are_measured()?;
        let path = "/kapis/monitoring.kubesphere.io/v1alpha3/cluster?metrics_filter=cluster_node_total";
        let mut last = Value::Null;
        let found = lab.ctx.until("KubeSphere counts the nodes", PATIENCE, || {
            let Ok(answer) = self.ask("GET", path, None) else { return Ok(None) };
            last = answer;
            Ok(is_node_total(&last, hosts).then_some(()))
        });
        found.map_err(|error| error.context(format!("its last answer was {last}")))
    }

    /// Nothing that was installed is left, except objects that stay by design.
    fn leaves_nothing(&self, before: &Dump) -> Result<()> {
        let mut left = Vec::new();
        let found = self.lab.ctx.until("monitoring is gone", PATIENCE, || {
            // A kind may disappear between the list of kinds and the list of its objects.
            let Ok(after) = self.lab.dump() else { return Ok(None) };
            left = added(before, &after);
            Ok(left.is_empty().then_some(()))
        });
        ensure!(
            found.is_ok(),
            "after monitoring was switched off, these objects are left: {}",
            left.join(", ")
        );
        Ok(())
    }
}

/// Objects that did not exist before, except those that stay by design.
fn added(before: &Dump, after: &Dump) -> Vec<String> {
    let is_kept = |name: &String| KEPT.iter().any(|(beginning, _)| name.starts_with(beginning));
    after.keys().filter(|name| !before.contains_key(*name) && !is_kept(name)).cloned().collect()
}

/// Whether the answer says that the cluster has so many nodes.
fn is_node_total(answer: &Value, nodes: usize) -> bool {
    let mut results = answer["results"].as_array().into_iter().flatten();
    let total = results.find(|result| result["metric_name"] == "cluster_node_total");
    let value = total.map(|total| &total["data"]["result"][0]["value"][1]);
    // KubeSphere writes values of metrics as texts.
    value.is_some_and(|value| *value == json!(nodes.to_string()) || *value == json!(nodes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn volumes_and_secrets_may_stay_and_other_objects_may_not() {
        let dump =
            |names: &[&str]| -> Dump { names.iter().map(|name| ((*name).into(), json!({}))).collect() };
        let before = dump(&["Service kube-system/kube-dns"]);
        let after = dump(&[
            "PersistentVolumeClaim kubesphere-monitoring-system/prometheus-k8s-db-prometheus-k8s-0",
            "Secret kubesphere-system/ks-installer-generated-notification",
            "Service kube-system/kube-dns",
            "Service kube-system/kubelet",
        ]);
        assert_eq!(added(&before, &after), ["Service kube-system/kubelet"]);
    }

    #[test]
    fn the_number_of_nodes_is_read_from_the_metric() {
        let answer = |value: Value| json!({"results": [{"metric_name": "cluster_node_total", "data": {"resultType": "vector", "result": [{"value": [1.5, value]}]}}]});
        assert!(is_node_total(&answer(json!("2")), 2) && is_node_total(&answer(json!(2)), 2));
        assert!(!is_node_total(&answer(json!("1")), 2) && !is_node_total(&json!({"results": []}), 2));
    }
}
