//! Real programs that KubeSphere 3.4 installs: metrics-server, Prometheus with its operator, Alertmanager, node-exporter, local
//! volumes, snapshots, redis, slapd. Each is used for its purpose. KubeSphere itself is not among them: its core is a stand-in.

use std::collections::BTreeSet;
use std::fs;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};

use super::image::Payload;
use super::{Lab, NAMESPACE, PATIENCE, VERSION, at_work};
use crate::checks;
use crate::context::Context;
use crate::registry;
use crate::site::Site;

/// Namespace of Prometheus and its like.
pub(super) const MONITORING: &str = "kubesphere-monitoring-system";
/// Components that `kk-lab` builds for the payload, only on request.
const ON_DEMAND: [&str; 8] = [
    "alertmanager",
    "local-path-provisioner",
    "metrics-server",
    "node-exporter",
    "prometheus",
    "prometheus-operator",
    "servers",
    "snapshot-controller",
];
/// A rule that Prometheus cannot read.
const WRONG_RULE: &str = "apiVersion: monitoring.coreos.com/v1
kind: PrometheusRule
metadata: {name: wrong, namespace: kubesphere-monitoring-system}
spec: {groups: [{name: wrong, rules: [{record: wrong, expr: 'up ==='}]}]}
";

pub(in super::super) fn run(ctx: &Context<'_>) -> Result<()> {
    on_fresh_hosts(ctx, |lab| {
        lab.installs_all()?;
        lab.nodes_are_measured().context("metrics-server")?;
        lab.servers_have_volumes().context("redis and slapd")?;
        lab.wrong_rules_are_refused().context("the webhook of prometheus-operator")?;
        lab.targets_are("node-exporter", lab.site.hosts.len())?;
        lab.etcd_is_watched_on_request().context("etcd's targets")?;
        lab.monitoring_goes_and_comes().context("monitoring")?;
        lab.nothing_to_do(&lab.full(&Wanted::ALL)?)?;
        lab.deletes_all()
    })
}

/// Hosts with the payload's images in their registry, and the operator with the payload.
pub(super) fn on_fresh_hosts(ctx: &Context<'_>, run: impl FnOnce(&Lab<'_>) -> Result<()>) -> Result<()> {
    let with: Vec<&str> = ON_DEMAND.iter().flat_map(|component| ["--with", component]).collect();
    let bare = Site::booted(ctx, &ctx.dir.join("site"), 2, None, &with)?;
    at_work(ctx, &bare, Payload::Full, run)
}

/// Images of the payload that the lab's registry does not have. Errors: the lab is not up.
pub(crate) fn missing_images(lab: crate::lab::Lab) -> Result<Vec<String>> {
    let mut missing = Vec::new();
    for image in images()? {
        let (name, tag) = image.rsplit_once(':').context("an image without a tag")?;
        let (_, repository) = name.split_once('/').context("an image without a registry")?;
        if !registry::holds(lab, repository, tag)? {
            missing.push(image);
        }
    }
    Ok(missing)
}

/// Images that the values of its charts name.
fn images() -> Result<BTreeSet<String>> {
    let charts = Payload::Full.source().join("charts");
    let mut images = BTreeSet::new();
    for chart in fs::read_dir(&charts).with_context(|| format!("cannot read {}", charts.display()))? {
        let values = chart?.path().join("values.yaml");
        let text =
            fs::read_to_string(&values).with_context(|| format!("cannot read {}", values.display()))?;
        let parsed: Value =
            serde_saphyr::from_str(&text).with_context(|| format!("{} is no YAML", values.display()))?;
        collect_images(&parsed, &mut images);
    }
    Ok(images)
}

/// Texts like `REGISTRY/NAME:TAG`.
fn collect_images(value: &Value, found: &mut BTreeSet<String>) {
    match value {
        Value::Object(map) => map.values().for_each(|value| collect_images(value, found)),
        Value::String(text) if text.contains('/') && text.contains(':') => drop(found.insert(text.clone())),
        _ => {}
    }
}

/// Components that a document requests in addition to those that every document requests.
struct Wanted {
    etcd: bool,
    monitoring: bool,
}

impl Wanted {
    const ALL: Self = Self { etcd: true, monitoring: true };

    fn spec(&self) -> Value {
        let server = json!({"enabled": true, "dataPolicy": "Delete"});
        json!({
            "common": {"redis": server, "openldap": server},
            "etcd": {"monitoring": self.etcd},
            "metrics_server": {"enabled": true},
            "monitoring": {"enabled": self.monitoring},
            "snapshot_controller": {"enabled": true},
        })
    }
}

impl Lab<'_> {
    fn full(&self, wanted: &Wanted) -> Result<Site> {
        self.with(&wanted.spec())
    }

    fn create(&self, wanted: &Wanted) -> Result<String> {
        Ok(self.ctx.kk_ok(&self.full(wanted)?, "create", &[])?.finished.stdout)
    }

    pub(super) fn installs_all(&self) -> Result<()> {
        let said = self.create(&Wanted::ALL)?;
        ensure!(said.contains(&format!("{VERSION}, 9 components are ready")), "no summary:\n{said}");
        let status = self.object()?["status"].take();
        for key in ["core", "metricsServer", "monitoring", "openldap", "redis", "snapshotController"] {
            ensure!(status[key]["status"] == "enabled", "{key} is not enabled: {status}");
        }
        Ok(())
    }

    /// The API of metrics answers for each node.
    pub(super) fn nodes_are_measured(&self) -> Result<()> {
        let (ctx, site) = (self.ctx, &self.site);
        ctx.until("kubectl top knows all nodes", PATIENCE, || {
            let said = ctx.kubectl(site, "top nodes --no-headers").unwrap_or_default();
            Ok(site.hosts.iter().all(|host| said.contains(host.as_str())).then_some(()))
        })
    }

    /// Each has a volume and accepts the password that was created for it.
    fn servers_have_volumes(&self) -> Result<()> {
        for claim in ["data-redis-0", "data-openldap-0"] {
            let words = format!("-n {NAMESPACE} get pvc {claim} -o jsonpath={{.status.phase}}");
            let phase = self.ctx.kubectl(&self.site, &words)?;
            ensure!(phase == "Bound", "{claim} is {phase}");
        }
        let keep = "REDISCLI_AUTH=$(cat /etc/lab/password) redis-cli set lab kept";
        let said = self.in_pod("redis-0", keep)?;
        ensure!(said.trim() == "OK", "redis said: {said}");
        let who = "ldapwhoami -x -D cn=admin,dc=lab,dc=example -y /etc/lab/password";
        let said = self.in_pod("openldap-0", who)?;
        ensure!(said.contains("cn=admin,dc=lab,dc=example"), "slapd said: {said}");
        Ok(())
    }

    fn in_pod(&self, pod: &str, script: &str) -> Result<String> {
        self.ctx.kubectl(&self.site, &format!("-n {NAMESPACE} exec {pod} -- sh -c '{script}'"))
    }

    fn wrong_rules_are_refused(&self) -> Result<()> {
        let refused = self.ctx.apply(&self.site, WRONG_RULE).err().context("a wrong rule was taken")?;
        let said = format!("{refused:#}");
        // The definition of the kind does not restrict expressions.
        ensure!(said.contains("could not parse expression"), "it was not the webhook that refused: {said}");
        Ok(())
    }

    /// Switched off, nothing of it is left.
    fn etcd_is_watched_on_request(&self) -> Result<()> {
        self.targets_are("etcd", 1)?;
        let servers = self.servers()?;
        self.create(&Wanted { etcd: false, ..Wanted::ALL })?;
        self.targets_are("etcd", 0)?;
        let left =
            self.ctx.kubectl(&self.site, "-n kube-system get service,endpoints -l app=etcd -o name")?;
        ensure!(left.trim().is_empty(), "something of it is left: {left}");
        self.create(&Wanted::ALL)?;
        self.targets_are("etcd", 1)?;
        ensure!(self.servers()? == servers, "redis and slapd were made again");
        Ok(())
    }

    /// Custom resources are removed while their operator, which removes their finalizers, still runs; then the operator and the
    /// kinds are removed.
    fn monitoring_goes_and_comes(&self) -> Result<()> {
        let (ctx, site) = (self.ctx, &self.site);
        let finalizers = format!("-n {MONITORING} get prometheus k8s -o jsonpath={{.metadata.finalizers}}");
        let finalizers = ctx.kubectl(site, &finalizers)?;
        ensure!(!finalizers.trim().is_empty(), "nothing has to wait for the operator");
        let servers = self.servers()?;
        self.create(&Wanted { monitoring: false, ..Wanted::ALL })?;
        let status = self.object()?["status"].take();
        ensure!(status["monitoring"].is_null(), "its entry stays: {status}");
        let kinds = "get crd,clusterrole,clusterrolebinding,validatingwebhookconfiguration -o name";
        let left = ctx.kubectl(site, kinds)?;
        for name in ["monitoring.coreos.com", "prometheus-k8s", "prometheus-operator"] {
            ensure!(!left.contains(name), "{name} is left:\n{left}");
        }
        let objects =
            format!("-n {MONITORING} get pods,services,deployments,statefulsets,daemonsets -o name");
        ctx.until("pods of monitoring are gone", PATIENCE, || {
            Ok(ctx.kubectl(site, &objects)?.trim().is_empty().then_some(()))
        })?;
        self.create(&Wanted::ALL)?;
        self.targets_are("etcd", 1)?;
        ensure!(self.servers()? == servers, "redis and slapd were made again");
        Ok(())
    }

    fn deletes_all(&self) -> Result<()> {
        let (ctx, site) = (self.ctx, self.full(&Wanted::ALL)?);
        let said = ctx.kk_ok(&site, "delete", &[])?.finished.stdout;
        for words in
            ["KubeSphere: monitoring is removed", "KubeSphere: redis is removed", "removed before the hosts"]
        {
            ensure!(said.contains(words), "kk did not say `{words}`:\n{said}");
        }
        for host in &site.hosts {
            let left = ctx.host(host, "ls /etc/kubernetes 2>/dev/null || :")?;
            ensure!(left.trim().is_empty(), "the cluster is not removed from {host}: {left}");
        }
        Ok(())
    }

    /// Prometheus, queried through its Service, has so many targets of a job, and reaches all of them.
    pub(super) fn targets_are(&self, job: &str, expected: usize) -> Result<()> {
        let mut last = String::new();
        let patience = PATIENCE + Duration::from_mins(1);
        let found = self.ctx.until(&format!("Prometheus has {expected} targets {job}"), patience, || {
            let Ok(answer) = self.targets() else { return Ok(None) };
            let all = answer["data"]["activeTargets"].as_array().cloned();
            let Some(all) = all else { return Ok(None) };
            let of_job: Vec<_> = all.iter().filter(|target| target["labels"]["job"] == job).collect();
            let health = |target: &&Value| format!("{} {}", target["health"], target["lastError"]);
            last = of_job.iter().map(health).collect::<Vec<_>>().join("\n");
            let is_up = of_job.iter().all(|target| target["health"] == "up");
            Ok((!all.is_empty() && of_job.len() == expected && is_up).then_some(()))
        });
        found.with_context(|| format!("it had last:\n{last}"))
    }

    fn targets(&self) -> Result<Value> {
        let (ctx, site) = (self.ctx, &self.site);
        let address = format!("-n {MONITORING} get service prometheus-k8s -o jsonpath={{.spec.clusterIP}}");
        let address = ctx.kubectl(site, &address)?;
        let ask =
            format!("curl -fsS --max-time 5 http://{}:9090/api/v1/targets?state=active", address.trim());
        serde_json::from_str(&ctx.host(site.control_plane(), &ask)?).context("Prometheus answers no JSON")
    }

    /// Identities of pods that nothing here is to touch.
    fn servers(&self) -> Result<Vec<String>> {
        let pods = self
            .ctx
            .kubectl_json(&self.site, &format!("-n {NAMESPACE} get pods -l 'app in (redis, openldap)'"))?;
        Ok(checks::items(&pods).map(|pod| checks::text(&pod["metadata"]["uid"])).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_images_of_the_payload_are_those_of_its_charts() {
        let images = images().unwrap();
        let names: BTreeSet<&str> =
            images.iter().filter_map(|image| Some(image.rsplit_once(':')?.0.rsplit_once('/')?.1)).collect();
        for name in ["admission-webhook", "node-exporter", "prometheus-config-reloader", "servers"] {
            assert!(names.contains(name), "{name}: {images:?}");
        }
        for image in &images {
            assert!(image.split('/').next().is_some_and(|registry| registry.contains('.')), "{image}");
            assert!(image.rsplit_once(':').is_some_and(|(_, tag)| !tag.contains('/')), "{image}");
        }
    }
}
