//! One `kk create cluster` from bare hosts to KubeSphere's stand-ins: killed while it waits, run again, with a document that
//! changes. KubeSphere itself is not installed here.

pub(super) mod faults;
pub(crate) mod figures;
pub(crate) mod full;
mod image;
pub(super) mod real;
pub(super) mod remove;
pub(super) mod toggle;
pub(super) mod upgrade;

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::checks;
use crate::context::Context;
use crate::kk::KkRun;
use crate::site::Site;

use image::Payload;

const NAMESPACE: &str = "kubesphere-system";
const VERSION: &str = "v3.4.1-stand-in";
/// How long a change may take until the status shows it.
const PATIENCE: Duration = Duration::from_mins(3);
/// The stand-ins are CoreDNS, whose image is on every node.
const COREDNS: &str =
    "-n kube-system get deployment coredns -o jsonpath={.spec.template.spec.containers[0].image}";

pub(super) fn run(ctx: &Context<'_>) -> Result<()> {
    with_installer(ctx, |lab| {
        lab.installs()?;
        lab.changes()?;
        lab.toggles()?;
        lab.heals()?;
        lab.uninstalls()?;
        lab.deletes()
    })
}

/// Calls `run` on fresh hosts, with a file that requests the installer. If it fails, the operator's log is kept.
fn with_installer(ctx: &Context<'_>, run: impl FnOnce(&Lab<'_>) -> Result<()>) -> Result<()> {
    let bare = Site::fresh(ctx, &ctx.dir.join("site"), 2, None)?;
    at_work(ctx, &bare, Payload::StandIns, run)
}

/// The same on hosts that are there.
fn at_work(
    ctx: &Context<'_>,
    bare: &Site,
    payload: Payload,
    run: impl FnOnce(&Lab<'_>) -> Result<()>,
) -> Result<()> {
    let archive = image::image(ctx, payload)?;
    let installer = json!({"image": archive, "version": VERSION});
    let site = bare.variant("kubesphere", |file| file["spec"]["kubesphere"] = installer)?;
    let lab = Lab { ctx, site };
    run(&lab).inspect_err(|_| lab.keep_log())
}

struct Lab<'a> {
    ctx: &'a Context<'a>,
    /// Its file has no `ClusterConfiguration`.
    site: Site,
}

impl Lab<'_> {
    /// Installs on bare hosts; `kk` is killed while it waits, and the next run continues.
    fn installs(&self) -> Result<()> {
        let (ctx, site) = (self.ctx, self.with(&json!({"metrics_server": {"enabled": true}}))?);
        let mut kk = ctx.kk_start(&site, "create", &[])?;
        ctx.await_task(&mut kk, "kubesphere/wait_until_ready")?;
        kk.signal(Signal::KILL)?;
        KkRun::of(kk)?;
        let run = ctx.kk_ok(&site, "create", &[])?;
        let said = &run.finished.stdout;
        ensure!(said.contains("KubeSphere: core is ready"), "core is not told of:\n{said}");
        ensure!(said.contains(&format!("{VERSION}, 3 components are ready")), "no summary:\n{said}");
        self.nothing_to_do(&site)?;
        let shown = ctx.run("kk-status", ctx.kk_job(&site, &["status"]))?.ok()?;
        ensure!(
            shown.contains(&format!("KubeSphere {VERSION}: Ready")),
            "kk status does not show it:\n{shown}"
        );
        ensure!(shown.contains("metrics-server"), "kk status shows no components:\n{shown}");

        let object = self.object()?;
        let (spec, status) = (&object["spec"], &object["status"]);
        ensure!(status["core"]["version"] == VERSION, "no version: {status}");
        ensure!(status["metricsServer"]["status"] == "enabled", "no entry: {status}");
        let address = ctx.host(site.control_plane(), "hostname -I")?;
        let member = checks::text(&spec["etcd"]["endpointIps"]);
        ensure!(address.split_whitespace().any(|one| one == member), "etcd is at {member}, not at {address}");
        // Prometheus reads metrics without a key of etcd. The cluster contains no such key.
        let metrics = ctx.host("node2", &format!("curl -fsS --max-time 5 http://{member}:2381/metrics"))?;
        ensure!(metrics.contains("etcd_server_has_leader 1"), "no metrics of etcd at port 2381 of {member}");
        let secrets = ctx.kubectl(&site, "-n kubesphere-monitoring-system get secrets -o name")?;
        ensure!(!secrets.contains("kube-etcd-client-certs"), "a key to etcd is in the cluster: {secrets}");
        let log = self.log()?;
        for line in
            ["Start installing core", "task metrics-server status is successful", "Welcome to KubeSphere!"]
        {
            ensure!(log.contains(line), "the log has no line '{line}':\n{log}");
        }
        let file = format!(
            "-n {NAMESPACE} exec deployment/ks-installer -- cat /kubesphere/playbooks/kubesphere_running"
        );
        ensure!(
            ctx.kubectl(&site, &file)?.contains("Welcome"),
            "the file that KubeKey waits for is not there"
        );
        Ok(())
    }

    /// One field of the document: one object.
    fn changes(&self) -> Result<()> {
        let before = self.generations()?;
        let site = self.with(&json!({"metrics_server": {"enabled": true, "replicas": 2}}))?;
        self.ctx.kk_ok(&site, "create", &[])?;
        let after = self.generations()?;
        let grown: Vec<&String> = after.keys().filter(|name| after[*name] != before[*name]).collect();
        ensure!(grown == ["stand-in-metrics-server"], "one field changed {grown:?}: {before:?} {after:?}");
        Ok(())
    }

    /// A component that is switched off leaves nothing, and is installed again when it is switched on.
    fn toggles(&self) -> Result<()> {
        self.ctx.kk_ok(&self.switched(false)?, "create", &[])?;
        let generations = self.generations()?;
        ensure!(!generations.contains_key("stand-in-metrics-server"), "it stays: {generations:?}");
        let site = self.with(&json!({"metrics_server": {"enabled": true, "replicas": 2}}))?;
        self.ctx.kk_ok(&site, "create", &[])?;
        let generations = self.generations()?;
        ensure!(
            generations.contains_key("stand-in-metrics-server"),
            "it does not come back: {generations:?}"
        );
        Ok(())
    }

    /// Deleted objects are created again: by the operator, or by `kk` when they are the operator's own.
    fn heals(&self) -> Result<()> {
        let (ctx, site) = (self.ctx, &self.site);
        ctx.kubectl(site, "-n ks-stand-in delete service stand-in-metrics-server")?;
        ctx.until("the Service is made again", PATIENCE, || {
            let found = ctx.kubectl(site, "-n ks-stand-in get service -o name")?;
            Ok(found.contains("stand-in-metrics-server").then_some(()))
        })?;
        ctx.kubectl(site, &format!("-n {NAMESPACE} delete rolebinding ks-installer"))?;
        let site = self.with(&json!({"metrics_server": {"enabled": true, "replicas": 2}}))?;
        ctx.kk_ok(&site, "create", &[])?;
        ctx.kubectl(&site, &format!("-n {NAMESPACE} get rolebinding ks-installer"))?;
        self.nothing_to_do(&site)
    }

    /// The object is removed after everything else, the user's objects of our kind and the namespace included.
    fn uninstalls(&self) -> Result<()> {
        let (ctx, site) = (self.ctx, &self.site);
        ctx.kubectl(site, &format!("-n {NAMESPACE} delete cc ks-installer --wait=false"))?;
        ctx.until("everything is removed", PATIENCE, || {
            let words = "get cc -A --ignore-not-found -o name";
            Ok(ctx.kubectl(site, words)?.trim().is_empty().then_some(()))
        })?;
        let left = ctx.kubectl(site, "get crd,clusterrole,namespace -o name")?;
        ensure!(!left.contains("stand-in"), "something is left:\n{left}");
        Ok(())
    }

    /// The whole cluster is deleted, KubeSphere first.
    fn deletes(&self) -> Result<()> {
        let (ctx, site) = (self.ctx, self.switched(true)?);
        ctx.kk_ok(&site, "create", &[])?;
        let run = ctx.kk_ok(&site, "delete", &[])?;
        let said = &run.finished.stdout;
        for words in ["KubeSphere: core is removed", "removed before the hosts"] {
            ensure!(said.contains(words), "kk did not say `{words}`:\n{said}");
        }
        let left = ctx.host(site.control_plane(), "ls /etc/kubernetes 2>/dev/null || :")?;
        ensure!(left.trim().is_empty(), "the cluster is not removed: {left}");
        Ok(())
    }

    /// The archive of the operator's image.
    fn archive(&self) -> Result<std::path::PathBuf> {
        let file = self.site.read()?;
        Ok(checks::text(&file["spec"]["kubesphere"]["image"]).into())
    }

    /// The site with this spec in its `ClusterConfiguration`, in addition to the settings that all sites have.
    fn with(&self, more: &Value) -> Result<Site> {
        let coredns = self.ctx.kubectl(&self.site, COREDNS).unwrap_or_default();
        let coredns = if coredns.is_empty() { self.default_image()? } else { coredns };
        let mut spec = json!({"stand_in": {"core": true, "image": coredns}, "etcd": {"monitoring": true}});
        for (key, value) in more.as_object().into_iter().flatten() {
            spec[key] = value.clone();
        }
        let metadata = json!({"name": "ks-installer", "labels": {"version": VERSION}});
        let document = json!({"kind": "ClusterConfiguration", "metadata": metadata, "spec": spec});
        let site = self.site.variant("with-document", |_| {})?;
        let text = std::fs::read_to_string(&site.file)?;
        std::fs::write(&site.file, format!("{text}\n---\n{document}\n"))?;
        Ok(site)
    }

    /// The name of CoreDNS' image in a cluster of this file, before the cluster exists.
    fn default_image(&self) -> Result<String> {
        let job = self.ctx.kk_job(&self.site, &["create", "cluster", "--dry-run", "--output", "json"]);
        let said = self.ctx.run("dry-run", job)?.ok()?;
        let word = said.split(['"', ' ']).find(|word| word.contains("/coredns:"));
        Ok(word.context("the plan pulls no coredns")?.to_owned())
    }

    fn nothing_to_do(&self, site: &Site) -> Result<()> {
        let run = self.ctx.kk_ok(site, "create", &[])?;
        ensure!(run.events.changes().is_empty(), "a second run changes {:?}", run.events.changes());
        Ok(())
    }

    fn object(&self) -> Result<Value> {
        self.ctx.kubectl_json(&self.site, &format!("-n {NAMESPACE} get cc ks-installer"))
    }

    /// Generation of each Deployment of the payload.
    fn generations(&self) -> Result<BTreeMap<String, Value>> {
        let list = self.ctx.kubectl_json(&self.site, "-n ks-stand-in get deployments")?;
        let of = |object: &Value| {
            (checks::text(&object["metadata"]["name"]), object["metadata"]["generation"].clone())
        };
        Ok(checks::items(&list).map(of).collect())
    }

    fn log(&self) -> Result<String> {
        self.ctx.kubectl(&self.site, &format!("-n {NAMESPACE} logs deployment/ks-installer --tail=-1"))
    }

    /// Writes the operator's log into the directory with all other files of the run.
    fn keep_log(&self) {
        let (ctx, site) = (self.ctx, &self.site);
        let pods = format!("-n {NAMESPACE} describe pods");
        let object = format!("-n {NAMESPACE} get cc ks-installer -o yaml");
        for (file, text) in [
            ("operator.log", self.log()),
            ("operator.txt", ctx.kubectl(site, &pods)),
            ("object.yaml", ctx.kubectl(site, &object)),
            ("pods.txt", ctx.kubectl(site, "describe pods -A")),
        ] {
            // The error that is being returned matters more than a failure to write this file.
            let _ = std::fs::write(ctx.dir.join(file), text.unwrap_or_else(|error| format!("{error:#}")));
        }
    }
}
