//! KubeSphere 3.4.1 itself. Its images and its release are the user's: `KS_IMAGES` is a directory with archives of the images
//! (`docker save`), `KS_ASSETS` the unpacked source of ks-installer 3.4.1. Without them nothing runs.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};

use super::{Lab, NAMESPACE, image};
use crate::checks;
use crate::context::Context;
use crate::registry::{Registry, USER};
use crate::site::Site;
use crate::suite::given;

const VERSION: &str = "v3.4.1";
/// Images are pulled and pods start for the first time.
const LIMIT: Duration = Duration::from_mins(25);
/// For one archive on its way into the registry.
const PUSH_LIMIT: Duration = Duration::from_mins(10);
/// Until the ready programs have finished the work that follows.
const PATIENCE: Duration = Duration::from_mins(3);
const PUSH: &str = include_str!("push.sh");
const ASK: &str = include_str!("ask.sh");

pub(in super::super) fn run(ctx: &Context<'_>) -> Result<()> {
    let images = given("KS_IMAGES", "a directory with archives of KubeSphere's images")?;
    let release = given("KS_ASSETS", "the unpacked source of ks-installer v3.4.1")?;
    let archive = image::of_release(ctx, &release)?;
    let bare = Site::fresh(ctx, &ctx.dir.join("site"), 2, None)?;
    // It is started with the arguments of the lab's registry, so the lab must be up.
    let _registry = Registry::empty(ctx)?;
    let site = bare.variant("registry", pulls_from_registry)?;
    let lab = Lab { ctx, site };
    let before = lab.before_kubesphere()?;
    let site = lab.site;
    push(ctx, &site, &images)?;

    let installer = json!({"image": archive, "version": VERSION, "registry": Registry::address()});
    let site = site.variant("kubesphere", |file| file["spec"]["kubesphere"] = installer)?;
    // Only the core: each other component needs more images.
    let console = json!({"console": {"enableMultiLogin": true, "port": 30880, "type": "NodePort"}});
    let spec = json!({"common": {"core": console}, "monitoring": {"enabled": false}});
    let metadata = json!({"name": "ks-installer", "namespace": NAMESPACE, "labels": {"version": VERSION}});
    let api_version = "installer.kubesphere.io/v1alpha1";
    let document = json!({"apiVersion": api_version, "kind": "ClusterConfiguration", "metadata": metadata, "spec": spec});
    let text = fs::read_to_string(&site.file)?;
    fs::write(&site.file, format!("{text}\n---\n{document}\n"))?;
    let lab = Lab { ctx, site };
    lab.is_real().and_then(|()| lab.removes(&before)).inspect_err(|_| lab.keep_log())
}

/// Adds the empty registry and its password to the file, in addition to the lab's registry.
fn pulls_from_registry(file: &mut Value) {
    let auths = &mut file["spec"]["registry"]["auths"];
    let mut auth = auths.as_object().and_then(|auths| auths.values().next().cloned()).unwrap_or_default();
    (auth["username"], auth["password"]) = (json!(USER.0), json!(USER.1));
    auths[Registry::address()] = auth;
}

/// Sends all images in the archives of a directory into the registry.
fn push(ctx: &Context<'_>, site: &Site, images: &Path) -> Result<()> {
    let entries = fs::read_dir(images).with_context(|| format!("cannot read {}", images.display()))?;
    let mut archives: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    archives.retain(|path| path.extension().is_some_and(|extension| extension == "tar"));
    archives.sort();
    ensure!(!archives.is_empty(), "{} has no archive of an image (*.tar)", images.display());
    for archive in archives {
        let script = format!("REGISTRY={}\n{PUSH}", Registry::address());
        let job = ctx.on_host(site.control_plane(), &script).stdin_file(&archive).limit(PUSH_LIMIT);
        let pushed = ctx.run("push", job)?.ok();
        let pushed = pushed.with_context(|| format!("cannot push the images in {}", archive.display()))?;
        ensure!(!pushed.trim().is_empty(), "{} has no image with a name", archive.display());
    }
    Ok(())
}

impl Lab<'_> {
    /// Installs KubeSphere into a cluster without it, which then answers as KubeSphere does. Once its controllers have marked the
    /// existing objects, a second create changes nothing.
    fn is_real(&self) -> Result<()> {
        let (ctx, site) = (self.ctx, &self.site);
        ctx.kk_slow(site, "create", &[], LIMIT)?;
        for program in ["ks-apiserver", "ks-controller-manager"] {
            self.pods_are_ready(program)?;
        }
        // Its password counts when ks-controller-manager has seen the account.
        let health = ctx.until("admin logs in", PATIENCE, || {
            let words = "METHOD=GET WHERE=/kapis/resources.kubesphere.io/v1alpha2/componenthealth";
            Ok(ctx.host(site.control_plane(), &format!("{words}\n{ASK}")).ok())
        })?;
        let health: Value = serde_json::from_str(&health).context("the health of components is no JSON")?;
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
        self.makes_a_workspace()?;
        self.marks_all_namespaces()?;
        self.nothing_to_do(site)
    }

    /// The pods of a program exist, run its own image, and are ready.
    fn pods_are_ready(&self, program: &str) -> Result<()> {
        let pods = self.ctx.kubectl_json(&self.site, &format!("-n {NAMESPACE} get pods -l app={program}"))?;
        let image = format!("/{program}:{VERSION}");
        ensure!(checks::items(&pods).next().is_some(), "there is no pod of {program}");
        for pod in checks::items(&pods) {
            let own = checks::text(&pod["spec"]["containers"][0]["image"]);
            ensure!(own.ends_with(&image), "a pod of {program} has the image {own}");
            let mut conditions = pod["status"]["conditions"].as_array().into_iter().flatten();
            let is_ready = conditions.any(|one| one["type"] == "Ready" && one["status"] == "True");
            ensure!(is_ready, "a pod of {program} is not ready: {}", pod["status"]);
        }
        Ok(())
    }

    /// Through KubeSphere's API; ks-controller-manager creates the objects of the template.
    fn makes_a_workspace(&self) -> Result<()> {
        let (ctx, site) = (self.ctx, &self.site);
        let template = json!({
            "apiVersion": "tenant.kubesphere.io/v1alpha2",
            "kind": "WorkspaceTemplate",
            "metadata": {"name": "lab"},
            "spec": {"template": {"spec": {"manager": "admin"}}},
        });
        let path = "/kapis/tenant.kubesphere.io/v1alpha3/workspacetemplates";
        let script = format!("METHOD=POST WHERE={path} WHAT='{template}'\n{ASK}");
        ctx.host(site.control_plane(), &script)?;
        ctx.until("the workspace is made of its template", PATIENCE, || {
            let found = ctx.kubectl(site, "get workspaces.tenant.kubesphere.io -o name")?;
            Ok(found.lines().any(|name| name.ends_with("/lab")).then_some(()))
        })
    }
}
