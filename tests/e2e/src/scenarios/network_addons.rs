//! kube-router as an addon of the phase `network`: in addition to flannel, where it only enforces `NetworkPolicies`, and alone with
//! its own router, without a network plugin of kk.

use std::fs;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};

use crate::checks::{self, items, text};
use crate::context::Context;
use crate::host_state;
use crate::report;
use crate::site::Site;

/// The version that the lab builds.
const VERSION: &str = "2.1.0";
const MANIFEST: &str = include_str!("../../kube-router.yaml");
const CLIENTS: &str = include_str!("../../policy.yaml");
/// Only pods of namespaces with this label may query the web server.
const POLICY: &str = "apiVersion: networking.k8s.io/v1\nkind: NetworkPolicy\nmetadata: {name: friends, namespace: web}\nspec:\n  \
    podSelector: {}\n  policyTypes: [Ingress]\n  ingress: [{from: [{namespaceSelector: {matchLabels: {may-ask: \"yes\"}}}]}]\n";
const SERVICE: &str = "web.web.svc.cluster.local";
/// Within this time a policy is enforced, and no longer enforced.
const ENFORCED: Duration = Duration::from_secs(10);
/// Traces of kube-router on a host.
const TRACES: &str = "ipset list -n | grep -E 'kube-router|KUBE-' || :; iptables-save | grep -E 'KUBE-|kube-router|kube-bridge' || :";

/// kube-router as a firewall in addition to flannel.
pub(super) fn run_policy(ctx: &Context<'_>) -> Result<()> {
    let lab = Site::fresh(ctx, &ctx.dir.join("site"), 3, None)?;
    let site = with_kube_router(&lab, "flannel", false)?;
    let before = host_state::of_all(ctx, &site.hosts)?;
    ctx.kk_ok(&site, "create", &[])?;
    checks::cluster_is_complete(ctx, &site)?;
    runs_everywhere(ctx, &site)?;
    checks::service_answers_across_nodes(ctx, &site)?;
    policy_is_enforced(ctx, &site)?;
    checks::create_changes_nothing(ctx, &site)?;
    deleted_objects_are_applied_again(ctx, &site)?;
    delete(ctx, &site, &before)
}

/// kube-router alone.
pub(super) fn run_alone(ctx: &Context<'_>) -> Result<()> {
    let lab = Site::fresh(ctx, &ctx.dir.join("site"), 3, None)?;
    let site = with_kube_router(&lab, "none", true)?;
    let before = host_state::of_all(ctx, &site.hosts)?;
    ctx.kk_ok(&site, "create", &[])?;
    checks::cluster_is_complete(ctx, &site)?;
    runs_everywhere(ctx, &site)?;
    checks::service_answers_across_nodes(ctx, &site)?;
    checks::dns_pods_answer_everywhere(ctx, &site)?;
    for host in &site.hosts {
        ctx.host(host, "ip link show kube-bridge; ! ip link show flannel.1 2>/dev/null")?;
    }
    checks::create_changes_nothing(ctx, &site)?;
    policy_is_enforced(ctx, &site)?;

    let file = site.dir.join("kube-router.yaml");
    let changed =
        fs::read_to_string(&file)?.replace("--run-service-proxy=false", "--run-service-proxy=false, --v=1");
    fs::write(&file, changed)?;
    installs_it_again(ctx, &site, "another manifest")?;
    let arguments = ctx.kubectl(
        &site,
        "-n kube-router get daemonset kube-router -o jsonpath={.spec.template.spec.containers[0].args}",
    )?;
    ensure!(arguments.contains("--v=1"), "the changed manifest is not applied: {arguments}");
    checks::create_changes_nothing(ctx, &site)?;
    delete(ctx, &site, &before)
}

/// The file of the lab with this plugin, and the manifest of kube-router next to it.
fn with_kube_router(lab: &Site, plugin: &str, routes: bool) -> Result<Site> {
    let network = &lab.read()?["spec"]["network"];
    let services = network["kubeServiceCIDR"].as_str().unwrap_or("10.233.0.0/18");
    let roles = format!("--run-router={routes}, --run-firewall=true");
    let mut manifest = MANIFEST
        .replace("VERSION", VERSION)
        .replace("ROLES", &roles)
        .replace("SERVICES", services)
        .replace("value: API", "value: lb.kubesphere.local");
    if !routes {
        manifest = without_cni(&manifest)?;
    }
    fs::write(lab.dir.join("kube-router.yaml"), manifest)?;
    lab.variant("with-kube-router", |cluster| {
        cluster["spec"]["network"]["plugin"] = json!(plugin);
        cluster["spec"]["addons"] = json!([{
            "name": "kube-router", "namespace": "kube-router", "phase": "network",
            "sources": {"yaml": {"path": ["kube-router.yaml"]}},
        }]);
    })
}

/// The manifest without the container that writes a CNI configuration: flannel has written its own.
fn without_cni(manifest: &str) -> Result<String> {
    let mut documents: Vec<Value> =
        serde_saphyr::from_multiple(manifest).context("the manifest is no YAML")?;
    for document in documents.iter_mut().filter(|document| document["kind"] == "DaemonSet") {
        if let Some(pod) = document["spec"]["template"]["spec"].as_object_mut() {
            pod.remove("initContainers");
        }
    }
    let one = |document: &Value| format!("---\n{document}\n");
    Ok(documents.iter().map(one).collect())
}

/// A ready pod of kube-router on every node: create waited for the nodes.
fn runs_everywhere(ctx: &Context<'_>, site: &Site) -> Result<()> {
    ctx.until("kube-router is ready on every node", Duration::from_secs(30), || {
        let set = ctx.kubectl_json(site, "-n kube-router get daemonset kube-router")?;
        Ok((set["status"]["numberReady"].as_u64() == Some(site.hosts.len() as u64)).then_some(()))
    })
}

/// A policy between namespaces holds for pods of other nodes, allowed traffic and Services pass, and nothing stays when it goes.
fn policy_is_enforced(ctx: &Context<'_>, site: &Site) -> Result<()> {
    let image = checks::image_of_coredns(ctx, site)?;
    ctx.apply(site, &checks::WEB.replace("image: IMAGE", &format!("image: {image}")))?;
    ctx.apply(site, &CLIENTS.replace("IMAGE", &image))?;
    let (first, second) = (&site.hosts[1], &site.hosts[2]);
    let pods = ctx.until("a web pod and two clients run on each worker", Duration::from_mins(1), || {
        let pods = checks::web_pods(ctx, site)?;
        let clients = ctx.kubectl_json(site, "get daemonsets -A")?;
        let ready = items(&clients)
            .filter(|set| ["friend", "stranger"].contains(&&*text(&set["metadata"]["name"])))
            .filter(|set| set["status"]["numberReady"].as_u64() >= Some(2))
            .count();
        Ok(Some(pods).filter(|pods| pods.len() == 2 && ready == 2))
    })?;
    // Each target is on the node of the other client.
    let targets = [(first, pods[second].clone()), (second, pods[first].clone()), (first, SERVICE.to_owned())];
    let answers = |client: &str| -> Vec<bool> {
        let ask = |(host, target): &(&String, String)| checks::ask_from(ctx, host, client, target, 2).is_ok();
        targets.iter().map(ask).collect()
    };
    let all = |client: &'static str, wanted: bool| {
        let what =
            format!("{} of the {client} {}", "queries", if wanted { "are answered" } else { "are blocked" });
        ctx.until(&what, ENFORCED, || {
            Ok(answers(client).iter().all(|answered| *answered == wanted).then_some(()))
        })
    };
    for client in ["friend", "stranger"] {
        all(client, true).context("before there is a policy")?;
    }
    ctx.apply(site, POLICY)?;
    let begun = std::time::Instant::now();
    all("stranger", false)?;
    report::line(&format!("  the policy was enforced after {:.1} s at most", begun.elapsed().as_secs_f64()));
    for _ in 0..5 {
        ensure!(answers("stranger") == [false; 3], "a query of the stranger passed");
        ensure!(answers("friend") == [true; 3], "a query of the friend was blocked");
    }
    ctx.kubectl(site, "-n web delete networkpolicy friends")?;
    all("stranger", true).context("after the policy was deleted")?;
    ctx.kubectl(site, "delete namespace web friend stranger --wait=true --timeout=60s").map(drop)
}

/// A `DaemonSet` that was deleted is applied again, and nothing else is done.
fn deleted_objects_are_applied_again(ctx: &Context<'_>, site: &Site) -> Result<()> {
    ctx.kubectl(site, "-n kube-router delete daemonset kube-router --wait=true --timeout=60s")?;
    installs_it_again(ctx, site, "a deleted DaemonSet")?;
    checks::create_changes_nothing(ctx, site)
}

fn installs_it_again(ctx: &Context<'_>, site: &Site, what: &str) -> Result<()> {
    let changes = ctx.kk_ok(site, "create", &[])?.events.changes();
    let tasks: Vec<&str> = changes.iter().map(|change| change.task.as_str()).collect();
    let is_own = |task: &&str| task.starts_with("network-addons/") || task.starts_with("verify/");
    ensure!(
        tasks.contains(&"network-addons/install_addon_kube-router") && tasks.iter().all(is_own),
        "{what}: these tasks did something: {tasks:?}"
    );
    runs_everywhere(ctx, site)
}

fn delete(
    ctx: &Context<'_>,
    site: &Site,
    before: &std::collections::BTreeMap<String, host_state::HostState>,
) -> Result<()> {
    ctx.kk_ok(site, "delete", &["--all"])?;
    for host in &site.hosts {
        let left = ctx.host(host, TRACES)?;
        ensure!(left.trim().is_empty(), "{host} still has:\n{left}");
    }
    host_state::expect_restored(ctx, before)
}
