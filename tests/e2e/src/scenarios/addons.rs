//! Addons from a bundle: the chart of a directory and a file with objects, on a cluster of one host. They are installed once, and
//! again after a change in the file, after a change by another tool, and after a kill in the middle.

use std::fs;
use std::path::Path;
use std::thread::sleep;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use rustix::process::Signal;
use serde_json::{Value, json};

use super::offline::{kk, text};
use crate::checks;
use crate::context::Context;
use crate::kk::KkRun;
use crate::site::Site;

/// A `ConfigMap`, a Secret, and a Deployment of CoreDNS, whose image is on every node.
const CHART: [(&str, &str); 4] = [
    ("Chart.yaml", "apiVersion: v2\nname: web\nversion: 0.1.0\n"),
    (
        "templates/map.yaml",
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: web}\ndata: {greeting: {{ required \"a greeting is needed\" .Values.greeting | quote }}}\n",
    ),
    (
        "templates/secret.yaml",
        "apiVersion: v1\nkind: Secret\nmetadata: {name: web}\nstringData: {password: {{ .Values.password | quote }}}\n",
    ),
    (
        "templates/deployment.yaml",
        "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\nspec:\n  selector: {matchLabels: {app: web}}\n  template:\n    \
         metadata:\n      labels: {app: web}\n      annotations: {greeting: {{ .Values.greeting | quote }}}\n    spec:\n      \
         terminationGracePeriodSeconds: 0\n      containers:\n      - {name: web, image: {{ .Values.image | quote }}, args: [-conf, /dev/null]}\n",
    ),
];
/// The first object names no namespace, which means the namespace of the addon.
const MAPS: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: one}\ndata: {a: b}\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: two, namespace: default}\n";
const PASSWORD: &str = "word-that-nobody-sees";
/// Connect and probe.
const ROUND_TRIPS: u64 = 2;

pub(super) fn run(ctx: &Context<'_>) -> Result<()> {
    let lab = Site::fresh(ctx, &ctx.dir.join("site"), 1, None)?;
    let site = with_addons(&lab)?;
    let bundle = bundle(ctx, &site)?;
    let addons = Addons { ctx, site: &site, bundle: &bundle };
    refused(&addons, &lab)?;
    // The chart has to be installed from the bundle, not from this directory.
    fs::rename(lab.dir.join("chart"), lab.dir.join("chart-elsewhere"))?;

    addons.create()?;
    checks::cluster_is_complete(ctx, &site)?;
    addons.greets("hello")?;
    let ready = addons.kubectl("-n demo get deployment web -o jsonpath={.status.readyReplicas}")?;
    ensure!(ready == "1", "helm was to wait for the Deployment, of which {ready} pods are ready");
    let password =
        addons.kubectl("-n demo get secret web -o go-template='{{.data.password | base64decode}}'")?;
    ensure!(password == PASSWORD, "the value of the file has not reached the chart");
    addons.kubectl("-n demo get configmap one")?;
    addons.kubectl("-n default get configmap two")?;
    addons.nothing_to_do()?;
    let left = ctx.host(
        site.control_plane(),
        &format!("grep -rlsD skip {PASSWORD} /etc /root /tmp /run /var/tmp /var/lib/kubekey || :"),
    )?;
    ensure!(left.is_empty(), "the password is left in files of the host:\n{left}");

    addons.changed_and_lost()?;
    addons.killed()?;
    addons.failing(&lab)?;
    addons.left_out()
}

struct Addons<'a> {
    ctx: &'a Context<'a>,
    site: &'a Site,
    bundle: &'a str,
}

/// Writes chart, values and manifest into the directory of the cluster file, and names them in a variant of that file.
fn with_addons(lab: &Site) -> Result<Site> {
    for (path, content) in CHART {
        let path = lab.dir.join("chart").join(path);
        fs::create_dir_all(path.parent().context("a file lies in a directory")?)?;
        fs::write(path, content)?;
    }
    fs::write(lab.dir.join("maps.yaml"), MAPS)?;
    let cluster = lab.read()?;
    let version = cluster["spec"]["components"]["coredns"].as_str().context("the lab pins CoreDNS")?;
    let image = format!("image=registry.k8s.io/coredns/coredns:{version}");
    greet(&lab.dir, "greeting: hello\n")?;
    lab.variant("addons", |cluster| {
        let values = json!([image, format!("password={PASSWORD}")]);
        let chart = json!({"path": "chart", "valuesFile": "values.yaml", "values": values, "wait": true});
        cluster["spec"]["addons"] = json!([
            {"name": "web", "namespace": "demo", "sources": {"chart": chart}},
            {"name": "maps", "namespace": "demo", "sources": {"yaml": {"path": ["maps.yaml"]}}},
        ]);
    })
}

fn greet(dir: &Path, values: &str) -> Result<()> {
    Ok(fs::write(dir.join("values.yaml"), values)?)
}

/// The bundle of that file: with helm, chart and manifest.
fn bundle(ctx: &Context<'_>, site: &Site) -> Result<String> {
    let [manifest, bundle] = ["manifest.yaml", "bundle.tar.zst"].map(|name| text(&site.dir.join(name)));
    kk(ctx, site, &["create", "manifest", "-f", &text(&site.file), "-o", &manifest])?.ok()?;
    kk(ctx, site, &["artifact", "export", "-m", &manifest, "-o", &bundle, "--workdir", "stock"])?.ok()?;
    kk(ctx, site, &["artifact", "verify", "-a", &bundle])?.ok()?;
    let index = kk(ctx, site, &["artifact", "inspect", "-a", &bundle, "--output", "json"])?.ok()?;
    let index: Value = serde_json::from_str(&index)?;
    let path = |kind: &str| checks::text(&index[kind][0]["path"]);
    ensure!(
        path("charts") == "charts/web-0.1.0.tgz" && path("manifests") == "manifests/maps.yaml",
        "the bundle has {} and {}",
        index["charts"],
        index["manifests"]
    );
    Ok(bundle)
}

/// Sources that the bundle lacks are reported before the first change.
fn refused(addons: &Addons<'_>, lab: &Site) -> Result<()> {
    let other = lab.variant("other", |cluster| {
        cluster["spec"]["addons"] = json!([
            {"name": "a", "sources": {"chart": {"path": "nowhere"}}},
            {"name": "b", "sources": {"yaml": {"path": ["https://files.example/b.yaml"]}}},
        ]);
    })?;
    let run = addons.ctx.kk(&other, "create", &["-a", addons.bundle, "--allow-unsigned"])?;
    let parts =
        ["chart nowhere is not in the bundle", "manifest https://files.example/b.yaml is not in the bundle"];
    run.expect_code(5)?.expect_said(&parts)?;
    ensure!(run.events.changes().is_empty(), "a create that was refused changed something");
    Ok(())
}

impl Addons<'_> {
    fn create(&self) -> Result<KkRun> {
        let run = self.ctx.kk_ok(self.site, "create", &["-a", self.bundle, "--allow-unsigned"])?;
        let said = format!("{}{}", run.finished.stdout, run.finished.stderr);
        ensure!(!said.contains(PASSWORD), "kk shows the password");
        Ok(run)
    }

    fn kubectl(&self, words: &str) -> Result<String> {
        Ok(self.ctx.kubectl(self.site, words)?.trim().to_owned())
    }

    fn greets(&self, wanted: &str) -> Result<()> {
        let greeting = self.kubectl("-n demo get configmap web -o jsonpath={.data.greeting}")?;
        ensure!(greeting == wanted, "the chart was installed with the greeting `{greeting}`, not `{wanted}`");
        Ok(())
    }

    /// Revisions of the release.
    fn revisions(&self) -> Result<usize> {
        Ok(self.kubectl("-n demo get secrets -l owner=helm,name=web -o name")?.lines().count())
    }

    fn nothing_to_do(&self) -> Result<()> {
        let run = self.create()?;
        let changes: Vec<String> = run.events.changes().iter().map(ToString::to_string).collect();
        ensure!(changes.is_empty(), "the create again changed something:\n{}", changes.join("\n"));
        for (host, trips) in run.events.finished()?.round_trips {
            ensure!(trips <= ROUND_TRIPS, "{host} took {trips} round trips, not {ROUND_TRIPS}");
        }
        Ok(())
    }

    /// A create changes exactly this addon.
    fn only(&self, name: &str, what: &str) -> Result<()> {
        let tasks: Vec<String> =
            self.create()?.events.changes().into_iter().map(|change| change.task).collect();
        ensure!(
            tasks == [format!("addons/install_addon_{name}")],
            "{what}: these tasks did something: {tasks:?}"
        );
        Ok(())
    }

    fn changed_and_lost(&self) -> Result<()> {
        greet(&self.site.dir, "greeting: changed\n")?;
        self.only("web", "another value")?;
        self.greets("changed")?;
        ensure!(self.revisions()? == 2, "a changed value is one revision more");

        let helm = "KUBECONFIG=/etc/kubernetes/admin.conf HELM_CACHE_HOME=/tmp/e2e-helm helm -n demo";
        self.ctx.host(self.site.control_plane(), &format!("{helm} uninstall web --wait"))?;
        self.only("web", "a release that was removed by hand")?;
        self.greets("changed")?;

        self.kubectl("-n demo delete configmap one")?;
        self.only("maps", "an object that was removed by hand")?;
        self.kubectl("-n demo get configmap one")?;
        self.nothing_to_do()
    }

    /// Helm is killed with kk, and its release stays in the middle.
    fn killed(&self) -> Result<()> {
        for (number, into) in [100, 400, 1000].into_iter().enumerate() {
            let greeting = format!("after kill {number}");
            greet(&self.site.dir, &format!("greeting: {greeting}\n"))?;
            let mut running =
                self.ctx.kk_start(self.site, "create", &["-a", self.bundle, "--allow-unsigned"])?;
            self.ctx.await_task(&mut running, "addons/install_addon_web")?;
            sleep(Duration::from_millis(into));
            if !running.has_ended()? {
                running.signal(Signal::KILL)?;
            }
            running.wait()?;
            self.create().with_context(|| format!("after a kill {into} ms into the task"))?;
            self.greets(&greeting)?;
            self.nothing_to_do()?;
        }
        Ok(())
    }

    /// The chart's own message reaches the user; the corrected file repairs it.
    fn failing(&self, lab: &Site) -> Result<()> {
        greet(&lab.dir, "other: value\n")?;
        let run = self.ctx.kk(self.site, "create", &["-a", self.bundle, "--allow-unsigned"])?;
        run.expect_code(1)?.expect_said(&["a greeting is needed"])?;
        ensure!(!run.said().contains(PASSWORD), "kk shows the password");
        greet(&lab.dir, "greeting: healed\n")?;
        self.only("web", "values that were put right")?;
        self.greets("healed")
    }

    /// An addon that the file no longer names stays, and is reported.
    fn left_out(&self) -> Result<()> {
        let without = self.site.variant("without", |cluster| {
            if let Some(addons) = cluster["spec"]["addons"].as_array_mut() {
                addons.truncate(1);
            }
        })?;
        let run = self.ctx.kk_ok(&without, "create", &["-a", self.bundle, "--allow-unsigned"])?;
        ensure!(run.events.changes().is_empty(), "an addon that the file does not name any more was changed");
        let warned = run.events.found("warning");
        let words = "the addon maps is no longer in the file";
        ensure!(warned.iter().any(|line| line.contains(words)), "kk does not say so: {warned:?}");
        self.kubectl("-n demo get configmap one").map(drop)
    }
}
