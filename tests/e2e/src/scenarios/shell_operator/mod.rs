//! The image of `shell-operator`, built here, runs the hooks of `deploy/hooks` in a cluster. One `kubectl apply` installs
//! everything, and each hook is checked by its effects.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};

use crate::cluster;
use crate::context::Context;
use crate::process::Job;
use crate::site::Site;

mod hooks;

/// The schedule of `nodes.py`, and the schedule in this test: a minute is long.
const EVERY_MINUTE: &str = r#""crontab": "* * * * *""#;
const EVERY_SECOND: &str = r#""crontab": "* * * * * *""#;
/// Objects that hooks leave behind when the applied objects are gone.
const WEBHOOKS: &str =
    "validatingwebhookconfiguration,mutatingwebhookconfiguration shell-operator-hooks-hooks";

pub(super) fn run(ctx: &Context<'_>) -> Result<()> {
    let site = cluster::ensure(ctx)?.site;
    let kubectl = lab_kubectl(ctx)?;
    let image = build_image(ctx, &kubectl)?;
    // Where pods run: the control plane takes none.
    for host in &site.hosts[1..] {
        let import = ctx.on_host(host, "exec ctr --namespace k8s.io images import -").stdin_file(&image);
        ctx.run("import", import)?.ok()?;
    }
    let objects = objects(ctx, &kubectl)?;
    ctx.apply(&site, &objects)?;
    hooks::all_work(ctx, &site).inspect_err(|_| keep_log(ctx, &site))?;
    tidy_up(ctx, &site, objects)
}

/// The kubectl that the lab builds: this machine need not have another one.
fn lab_kubectl(ctx: &Context<'_>) -> Result<PathBuf> {
    let job = ctx.lab_job(&["mirror", "build", "--programs", "kubernetes"]).limit(Duration::from_mins(15));
    let said = ctx.run("programs", job)?.ok()?;
    let (_, directory) = said.trim().split_once('\t').context("kk-lab names no directory of programs")?;
    Ok(Path::new(directory).join("kubectl"))
}

/// The image, as `make image` builds it.
fn build_image(ctx: &Context<'_>, kubectl: &Path) -> Result<PathBuf> {
    let binary = ctx.tools.kk.with_file_name("shell-operator");
    ensure!(binary.exists(), "{} is not there\nhint: `make build`", binary.display());
    let directory = ctx.tools.images();
    let job = Job::new("bash").args([&deploy().join("image/build.sh"), &binary, &directory]);
    let job = job.env("KUBECTL", kubectl).env("IMAGE", "shell-operator:latest");
    ctx.run("image", job.limit(Duration::from_mins(8)))?.ok()?;
    Ok(directory.join("shell-operator.tar"))
}

/// The objects that `kubectl apply -k deploy` would apply, with a faster schedule. The hosts have no checkout.
fn objects(ctx: &Context<'_>, kubectl: &Path) -> Result<String> {
    let text = ctx.run("kustomize", Job::new(kubectl).args(["kustomize"]).args([deploy()]))?.ok()?;
    ensure!(text.contains(EVERY_MINUTE), "no hook asks for {EVERY_MINUTE}");
    Ok(text.replace(EVERY_MINUTE, EVERY_SECOND))
}

fn deploy() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy")
}

/// The shared cluster is restored to its previous state.
fn tidy_up(ctx: &Context<'_>, site: &Site, objects: String) -> Result<()> {
    // While the operator still converts them.
    ctx.kubectl(site, "delete backups,users --all --all-namespaces")?;
    ctx.kubectl(site, &format!("delete {WEBHOOKS}"))?;
    ctx.kubectl(site, &format!("delete namespace {} --wait=false", hooks::NAMESPACES.join(" ")))?;
    let delete =
        "exec kubectl --kubeconfig /etc/kubernetes/admin.conf --cache-dir /tmp/e2e-kubectl delete -f -";
    ctx.run("kubectl-delete", ctx.on_host(site.control_plane(), delete).stdin(objects))?.ok()?;
    // Their pods may not run, and end only after the kubelet stops waiting for them.
    for name in hooks::NAMESPACES {
        ctx.kubectl(site, &format!("wait --for=delete namespace/{name} --timeout=100s"))?;
    }
    Ok(())
}

/// Writes the operator's log into the directory with all other files of the run.
fn keep_log(ctx: &Context<'_>, site: &Site) {
    for (file, words) in [
        ("operator.log", "-n shell-operator logs deployment/shell-operator --tail=-1"),
        ("operator.txt", "-n shell-operator describe pods"),
    ] {
        if let Ok(text) = ctx.kubectl(site, words) {
            // The error that is being returned matters more than a failure to write this file.
            let _ = fs::write(ctx.dir.join(file), text);
        }
    }
}
