//! KubeSphere itself, 3.4.1 or 4.1.3. The user provides its images and its release: `KS_IMAGES` is a directory with archives of
//! images (`docker save`), `KS_ASSETS` the unpacked source of ks-installer 3.4.1 or the chart ks-core of 4.1.3. Nothing runs
//! without them, or without an image of the core. Parts whose images are missing are left out, and the result lists them.
//!
//! The core is installed, monitoring of 3.4.1 or an extension of 4.1.3 is switched on and off, and KubeSphere is removed. Then it
//! is installed again, Kubernetes is upgraded below it, and it is removed again. The whole API is compared after each removal.

mod archives;
mod compare;
mod extension;
mod monitoring;

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};

use super::image::Release;
use super::remove::{Dump, PROJECT, is_removed_first};
use super::{Lab, NAMESPACE};
use crate::checks;
use crate::context::Context;
use crate::registry::{Registry, USER};
use crate::report;
use crate::scenarios::{BOTH, FROM, TO};
use crate::site::Site;
use crate::suite::{NotRun, given};
use archives::{Archives, in_registry};
use compare::{changed_by_upgrade, is_kept, marked, unexplained};

/// Images are pulled and pods start for the first time.
const LIMIT: Duration = Duration::from_mins(25);
/// Until the binaries have finished the work that follows.
const PATIENCE: Duration = Duration::from_mins(3);
const ASK: &str = include_str!("ask.sh");
/// The scenario creates it.
const WORKSPACE: &str = "lab";
/// The provisioner of volumes, and the image of its helper pods.
const VOLUMES: [&str; 4] = ["--with", "local-path-provisioner", "--with", "servers"];
/// Kubernetes deletes certificate signing requests after an hour.
const EXPIRING: &str = "CertificateSigningRequest /";

pub(in super::super) fn run(ctx: &Context<'_>) -> Result<()> {
    let images = given("KS_IMAGES", "a directory with archives of KubeSphere's images")?;
    let release =
        given("KS_ASSETS", "the unpacked source of ks-installer v3.4.1, or the chart ks-core of v4.1.3")?;
    let release = Release::build(ctx, &release)?;
    let plan = Plan::new(ctx, release, Archives::open(ctx, &images)?)?;
    let result = plan.run(ctx);
    for note in &plan.notes {
        report::result(&format!("  {note}"));
    }
    result
}

/// The parts that run with the given images.
struct Plan {
    release: Release,
    archives: Archives,
    /// Only for 3.4.1.
    with_monitoring: bool,
    /// Only for 4.1.3.
    extension: Option<String>,
    /// Lines for the result: stand-ins, and which parts run.
    notes: Vec<String>,
}

impl Plan {
    /// Compares the images that the release needs with the archives, and prints the result for each image. Errors: an image of the
    /// core is missing; or the release does not know the extension.
    fn new(ctx: &Context<'_>, release: Release, archives: Archives) -> Result<Self> {
        let version = &release.version;
        let needed = |spec: &Value| -> Result<BTreeSet<String>> {
            let mut document = document(version, spec);
            document["spec"]["local_registry"] = json!(Registry::address());
            let images = release.images(ctx, &document, FROM)?;
            Ok(images.iter().map(|image| in_registry(image)).collect())
        };
        let core = needed(&json!({}))?;
        let mut monitoring = BTreeSet::new();
        if !is_4(version) {
            // The metrics of etcd need no image, but addresses, which only kk knows.
            monitoring = needed(&monitoring::spec(false))?.difference(&core).cloned().collect();
        }
        let mut table = format!("images of KubeSphere {version}:\n");
        for (part, images) in [("core", &core), ("monitoring", &monitoring)] {
            for image in images {
                let _ = writeln!(table, "  {part}: {image}: {}", archives.describe(image));
            }
        }
        report::line(table.trim_end());
        fs::write(ctx.dir.join("images.txt"), &table)?;
        let missing = archives.missing(&core);
        if !missing.is_empty() {
            let missing = missing.join(", ");
            return Err(NotRun(format!("no archive in KS_IMAGES contains {missing}")).into());
        }

        let missing = archives.missing(&monitoring);
        let with_monitoring = !is_4(version) && missing.is_empty();
        let stand_ins = archives.stand_ins(&core.union(&monitoring).cloned().collect());
        let stand_ins = if stand_ins.is_empty() { "no image".to_owned() } else { stand_ins.join(", ") };
        let mut notes = vec![format!("KubeSphere {version}, stand-ins: {stand_ins}")];
        let mut extension = None;
        if is_4(version) {
            extension = std::env::var("KS_EXTENSION").ok().filter(|name| !name.is_empty());
            notes.push(match &extension {
                Some(name) => {
                    format!("extension {name}: run; `ks-installer images` does not list its images")
                }
                None => "extension: not run: set KS_EXTENSION to a name".to_owned(),
            });
            let is_known = extension.as_ref().is_none_or(|name| release.has(&format!("extension-{name}")));
            ensure!(is_known, "there is no definition of the extension {}", extension.unwrap_or_default());
        } else if with_monitoring {
            notes.push("monitoring, metrics-server and metrics of etcd: run".to_owned());
        } else {
            let missing = missing.join(", ");
            notes.push(format!(
                "monitoring, metrics-server and metrics of etcd: not run: no archive contains {missing}"
            ));
        }
        Ok(Self { release, archives, with_monitoring, extension, notes })
    }

    fn run(&self, ctx: &Context<'_>) -> Result<()> {
        let archive = self.release.image(ctx)?;
        let words = [BOTH, &VOLUMES[..]].concat();
        let bare = Site::booted(ctx, &ctx.dir.join("site"), 2, None, &words)?;
        // It is started with the arguments of the lab's registry, so the lab must be up.
        let _registry = Registry::empty(ctx)?;
        let site = bare.variant("registry", pulls_from_registry)?;
        let version = &self.release.version;
        let installer = json!({"image": archive, "version": version, "registry": Registry::address()});
        let site = site.variant("kubesphere", |file| file["spec"]["kubesphere"] = installer)?;
        let real = Real { lab: Lab { ctx, site }, version };
        self.steps(&real).inspect_err(|_| real.lab.keep_log())
    }

    fn steps(&self, real: &Real<'_>) -> Result<()> {
        let (ctx, lab) = (real.lab.ctx, &real.lab);
        let mut before = lab.before_kubesphere()?;
        self.archives.push(ctx, &lab.site)?;
        if self.with_monitoring {
            real.provides_volumes().context("volumes")?;
            before = lab.dump()?;
        }
        real.installs().context("the core")?;
        // Namespaces of extensions, which KubeSphere keeps.
        let mut kept = Vec::new();
        if self.with_monitoring {
            real.monitors().context("monitoring")?;
        }
        if let Some(name) = &self.extension {
            kept = real.extends(name).with_context(|| format!("the extension {name}"))?;
        }
        let is_other = |object: &str| object.starts_with(EXPIRING) || is_kept(object, &kept);
        lab.removes(|after| unexplained(&before, after, is_other)).context("removal")?;

        lab.makes_a_project()?;
        let before = lab.dump()?;
        real.installs().context("the core, again")?;
        let installed = lab.dump()?;
        let upgraded = real.upgrades().context("upgrade")?;
        let changed = changed_by_upgrade(&before, &installed, &upgraded.lab.dump()?);
        let is_other = |object: &str| object.starts_with(EXPIRING) || changed.contains(object);
        let differ = |after: &Dump| {
            let mut found = unexplained(&before, after, is_other);
            found.extend(marked(after, &changed));
            found
        };
        upgraded.lab.removes(differ).context("removal after the upgrade")?;

        // The whole cluster is deleted while KubeSphere is in it.
        let core = upgraded.core()?;
        upgraded.create(&core)?;
        let run = ctx.kk_slow(&core, "delete", &[], LIMIT)?;
        is_removed_first(&run)
    }
}

/// KubeSphere on the hosts of the lab.
struct Real<'a> {
    lab: Lab<'a>,
    version: &'a str,
}

impl Real<'_> {
    /// The site with this spec in its `ClusterConfiguration`, in addition to the settings that all sites have.
    fn with(&self, name: &str, spec: &Value) -> Result<Site> {
        let site = self.lab.site.variant(name, |_| {})?;
        let text = fs::read_to_string(&site.file)?;
        fs::write(&site.file, format!("{text}\n---\n{}\n", document(self.version, spec)))?;
        Ok(site)
    }

    /// The site with the core only: each other component needs more images.
    fn core(&self) -> Result<Site> {
        self.with("core", &json!({}))
    }

    fn create(&self, site: &Site) -> Result<()> {
        self.lab.ctx.kk_slow(site, "create", &[], LIMIT).map(drop)
    }

    /// Installs the core into a cluster without it. KubeSphere creates a workspace, and adds a project to it. When its controllers
    /// have marked the existing objects, a second create changes nothing.
    fn installs(&self) -> Result<()> {
        let core = self.core()?;
        self.create(&core)?;
        self.core_is_ready()?;
        self.admin_logs_in()?;
        self.makes_a_workspace()?;
        self.adds_the_project()?;
        if !is_4(self.version) {
            self.lab.marks_all_namespaces()?;
        }
        self.lab.nothing_to_do(&core)
    }

    /// The pods of the core exist, run their own images, and are ready.
    fn core_is_ready(&self) -> Result<()> {
        for program in ["ks-apiserver", "ks-controller-manager"] {
            let image = format!("/{program}:{}", self.version);
            for own in self.ready_pods(NAMESPACE, &format!("app={program}"))? {
                ensure!(own.ends_with(&image), "a pod of {program} has the image {own}");
            }
        }
        Ok(())
    }

    /// Images of the pods with this label. Errors: there is no such pod, or one of them is not ready.
    fn ready_pods(&self, namespace: &str, label: &str) -> Result<Vec<String>> {
        let words = format!("-n {namespace} get pods -l {label}");
        let pods = self.lab.ctx.kubectl_json(&self.lab.site, &words)?;
        let mut images = Vec::new();
        for pod in checks::items(&pods).filter(|pod| pod["metadata"]["deletionTimestamp"].is_null()) {
            let mut conditions = pod["status"]["conditions"].as_array().into_iter().flatten();
            let is_ready = conditions.any(|one| one["type"] == "Ready" && one["status"] == "True");
            ensure!(is_ready, "a pod with {label} is not ready: {}", pod["status"]);
            images.push(checks::text(&pod["spec"]["containers"][0]["image"]));
        }
        ensure!(!images.is_empty(), "there is no pod with {label}");
        Ok(images)
    }

    /// A request of admin to ks-apiserver.
    fn ask(&self, method: &str, path: &str, body: Option<&Value>) -> Result<Value> {
        let body = body.map(|body| format!(" WHAT='{body}'")).unwrap_or_default();
        let script = format!("METHOD={method} WHERE='{path}'{body}\n{ASK}");
        let answer = self.lab.ctx.host(self.lab.site.control_plane(), &script)?;
        serde_json::from_str(&answer).with_context(|| format!("the answer to {path} is no JSON"))
    }

    /// ks-apiserver gives admin a token, and knows the nodes and itself.
    fn admin_logs_in(&self) -> Result<()> {
        let (ctx, site) = (self.lab.ctx, &self.lab.site);
        // Its password counts when ks-controller-manager has seen the account.
        let health = ctx.until("admin logs in", PATIENCE, || {
            Ok(self.ask("GET", "/kapis/resources.kubesphere.io/v1alpha2/componenthealth", None).ok())
        })?;
        ensure!(
            health["nodeStatus"]["totalNodes"] == json!(site.hosts.len()),
            "ks-apiserver does not know the nodes: {health}"
        );
        let known: Vec<String> = health["kubesphereStatus"]
            .as_array()
            .into_iter()
            .flatten()
            .map(|component| checks::text(&component["name"]))
            .collect();
        ensure!(
            known.iter().any(|name| name == "ks-apiserver"),
            "ks-apiserver does not know itself among {known:?}: {health}"
        );
        Ok(())
    }

    /// Path of templates in KubeSphere's API.
    fn templates(&self) -> &str {
        if is_4(self.version) {
            "/kapis/tenant.kubesphere.io/v1beta1/workspacetemplates"
        } else {
            "/kapis/tenant.kubesphere.io/v1alpha3/workspacetemplates"
        }
    }

    /// Through KubeSphere's API; ks-controller-manager creates the objects of the template.
    fn makes_a_workspace(&self) -> Result<()> {
        let (ctx, site) = (self.lab.ctx, &self.lab.site);
        let spec = json!({"template": {"spec": {"manager": "admin"}}});
        let mut template = json!({
            "apiVersion": "tenant.kubesphere.io/v1alpha2",
            "kind": "WorkspaceTemplate",
            "metadata": {"name": WORKSPACE},
            "spec": spec,
        });
        if is_4(self.version) {
            template["apiVersion"] = json!("tenant.kubesphere.io/v1beta1");
            template["spec"]["placement"] = json!({"clusterSelector": {}});
        }
        self.ask("POST", self.templates(), Some(&template))?;
        ctx.until("the workspace is made of its template", PATIENCE, || {
            let found = ctx.kubectl(site, "get workspaces.tenant.kubesphere.io -o name")?;
            Ok(found.lines().any(|name| name.ends_with(&format!("/{WORKSPACE}"))).then_some(()))
        })
    }

    /// ks-controller-manager creates roles in a namespace of the workspace, and protects the namespace with a finalizer.
    fn adds_the_project(&self) -> Result<()> {
        let (ctx, site) = (self.lab.ctx, &self.lab.site);
        ctx.kubectl(site, &format!("label namespace {PROJECT} kubesphere.io/workspace={WORKSPACE}"))?;
        let group = if is_4(self.version) { "iam.kubesphere.io" } else { "rbac.authorization.k8s.io" };
        ctx.until("the project is in the workspace", PATIENCE, || {
            let roles = ctx.kubectl(site, &format!("-n {PROJECT} get roles.{group} -o name"))?;
            let words = format!("get namespace {PROJECT} -o jsonpath={{.metadata.finalizers}}");
            let finalizers = ctx.kubectl(site, &words)?;
            Ok((!roles.trim().is_empty() && finalizers.contains("kubesphere.io")).then_some(()))
        })
    }

    /// Upgrades Kubernetes to its next minor version. KubeSphere then answers as before, and a create changes nothing.
    fn upgrades(&self) -> Result<Self> {
        let (ctx, core) = (self.lab.ctx, self.core()?);
        // Prometheus is switched off: its PodDisruptionBudget requires its only pod, which therefore cannot be evicted.
        let words = ["upgrade", "--with-kubernetes", TO, "-y", "--output", "json"];
        ctx.run("kk-upgrade", ctx.kk_job(&core, &words).limit(LIMIT))?.ok()?;
        let site =
            self.lab.site.variant("upgraded", |file| file["spec"]["kubernetes"]["version"] = json!(TO))?;
        let upgraded = Self { lab: Lab { ctx, site }, version: self.version };
        let site = &upgraded.lab.site;
        checks::nodes_are_ready(ctx, site)?;
        let versions =
            ctx.kubectl(site, "get nodes -o jsonpath={.items[*].status.nodeInfo.kubeletVersion}")?;
        ensure!(
            versions.split_whitespace().all(|version| version == TO),
            "not all nodes are at {TO}: {versions}"
        );
        // Evicted pods start on nodes that accept pods again.
        let mut last = None;
        let ready = ctx.until("the core is ready", PATIENCE, || {
            last = upgraded.core_is_ready().err();
            Ok(last.is_none().then_some(()))
        });
        ready.with_context(|| format!("last: {last:?}"))?;
        upgraded.admin_logs_in()?;
        let kept = upgraded.ask("GET", &format!("{}/{WORKSPACE}", upgraded.templates()), None)?;
        ensure!(kept["metadata"]["name"] == WORKSPACE, "the workspace is not the same: {kept}");
        upgraded.lab.nothing_to_do(&upgraded.core()?)?;
        Ok(upgraded)
    }
}

/// Adds the empty registry and its password to the file, in addition to the lab's registry.
fn pulls_from_registry(file: &mut Value) {
    let auths = &mut file["spec"]["registry"]["auths"];
    let mut auth = auths.as_object().and_then(|auths| auths.values().next().cloned()).unwrap_or_default();
    (auth["username"], auth["password"]) = (json!(USER.0), json!(USER.1));
    auths[Registry::address()] = auth;
}

fn is_4(version: &str) -> bool {
    version.starts_with("v4.")
}

/// A `ClusterConfiguration` with this spec, in addition to the settings of all documents. KubeSphere's data is deleted with it, so
/// that the API is as before.
fn document(version: &str, more: &Value) -> Value {
    let console = json!({"enableMultiLogin": true, "port": 30880, "type": "NodePort"});
    let mut spec = json!({
        "common": {"core": {"console": console}},
        "dataPolicy": "Delete",
        "monitoring": {"enabled": false},
    });
    for (key, value) in more.as_object().into_iter().flatten() {
        spec[key] = value.clone();
    }
    let metadata = json!({"name": "ks-installer", "namespace": NAMESPACE, "labels": {"version": version}});
    let api_version = "installer.kubesphere.io/v1alpha1";
    json!({"apiVersion": api_version, "kind": "ClusterConfiguration", "metadata": metadata, "spec": spec})
}
