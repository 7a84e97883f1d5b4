//! Three control planes and a worker with haproxy. Each control plane loses its power in turn, and a client on the worker always gets
//! answers. haproxy is repaired, follows a control plane that leaves and joins again, and is removed with the cluster.

use std::thread::sleep;
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};

use super::{Client, HAPROXY, address, queried_at, three_and_one, uses_itself};
use crate::checks;
use crate::context::Context;
use crate::host_state;
use crate::report;
use crate::site::{Site, keep_hosts};

/// The longest time without an answer when a control plane loses its power, in milliseconds.
const LONGEST: u64 = 2500;
/// The longest time without an answer when the configuration changes, in milliseconds.
const LONGEST_CHANGE: u64 = 3000;
/// Longer than the time after which KubeKey's haproxy ends idle connections (30 s).
const IDLE: Duration = Duration::from_mins(1);
const PATIENCE: Duration = Duration::from_mins(3);

/// Damages of haproxy on the worker.
const DAMAGES: [(&str, &str); 4] = [
    ("its configuration is edited", "sed -i 's/inter 1s/inter 9s/' /etc/kubekey/haproxy/haproxy.cfg"),
    ("its configuration is removed", "rm /etc/kubekey/haproxy/haproxy.cfg"),
    ("its manifest is removed", "rm /etc/kubernetes/manifests/haproxy.yaml"),
    ("its container is stopped", "crictl stop $(crictl ps -q --name '^haproxy$') >/dev/null"),
];

/// A pod that runs on the first control plane and logs nothing.
const IDLE_POD: &str = "{apiVersion: v1, kind: Pod, metadata: {name: idle}, spec: {nodeName: NODE, \
                        tolerations: [{operator: Exists}], containers: [{name: c, image: IMAGE}]}}";

pub(in super::super) fn run(ctx: &Context<'_>) -> Result<()> {
    let lab = Site::booted(ctx, &ctx.dir.join("site"), 4, None, &HAPROXY)?;
    let [first, .., worker] = &lab.hosts[..] else { bail!("four hosts") };
    let before = host_state::of_all(ctx, &lab.hosts)?;
    let site = super::with_balancer(&lab, "haproxy", "haproxy")?
        .variant("haproxy", |cluster| three_and_one(cluster, &lab.hosts))?;
    ctx.kk_ok(&site, "create", &[])?;
    uses_itself(ctx, &site)?;

    let conf = ctx.host(first, "cat /etc/kubernetes/admin.conf")?;
    let job = ctx.on_host(worker, "umask 077; cat >/tmp/admin.conf").stdin(conf);
    ctx.run("admin-conf", job)?.ok()?;
    idle_logs_live(ctx, &site, worker).context("kubectl logs -f without output")?;
    for (case, breaks) in DAMAGES {
        ctx.host(worker, breaks)?;
        ctx.kk_ok(&site, "create", &[]).with_context(|| case.to_owned())?;
        uses_itself(ctx, &site).with_context(|| case.to_owned())?;
    }
    for lost in &site.hosts[..3] {
        without(ctx, &site, lost, worker).with_context(|| format!("without {lost}"))?;
    }
    configuration_follows(ctx, &site, worker).context("a control plane that leaves and joins again")?;

    ctx.host(worker, "rm /tmp/admin.conf")?;
    ctx.kk_ok(&site, "delete", &["--all"])?;
    host_state::expect_restored(ctx, &before)
}

/// A connection through haproxy on which nothing is sent for a while stays open.
fn idle_logs_live(ctx: &Context<'_>, site: &Site, worker: &str) -> Result<()> {
    let coredns = ctx.kubectl_json(site, "-n kube-system get deployment coredns")?;
    let image = checks::text(&coredns["spec"]["template"]["spec"]["containers"][0]["image"]);
    ctx.apply(site, &IDLE_POD.replace("NODE", site.control_plane()).replace("IMAGE", &image))?;
    ctx.kubectl(site, "wait --for=condition=Ready pod/idle --timeout=60s")?;
    let follow = "kubectl --kubeconfig /tmp/admin.conf --cache-dir /tmp/e2e-kubectl logs -f idle >/dev/null";
    let mut logs = ctx.start("idle-logs", ctx.on_host(worker, follow).limit(Duration::from_mins(5)))?;
    sleep(IDLE);
    ensure!(!logs.has_ended()?, "the connection was closed within {} s", IDLE.as_secs());
    ctx.kubectl(site, "delete pod idle --grace-period=1")?;
    logs.wait()?.ok()?;
    Ok(())
}

/// Powers a control plane off and on.
fn without(ctx: &Context<'_>, site: &Site, lost: &str, worker: &str) -> Result<()> {
    let other = site.hosts[..3].iter().find(|host| *host != lost).context("another control plane")?;
    let rest = queried_at(site, other);
    let since = ready_since(ctx, &rest, worker)?;
    let client = Client::start(ctx, worker)?;
    ctx.power(lost, "off")?;
    // Until the API itself has noticed, every connection of a kubelet to the lost host has been used.
    ctx.until("the API shows the lost node as not Ready", PATIENCE, || {
        let conditions = "{.status.conditions[?(@.type==\"Ready\")].status}";
        let said = ctx.kubectl(&rest, &format!("get node {lost} -o jsonpath='{conditions}'"));
        Ok(said.ok().filter(|status| status != "True"))
    })?;
    ctx.power(lost, "on")?;
    let url = format!("https://{}:6443/readyz", address(site, lost)?);
    ctx.until("its API server is ready again", PATIENCE, || {
        let said = ctx.host(worker, &format!("curl --silent --insecure --max-time 5 {url} || :"))?;
        Ok((said == "ok").then_some(()))
    })?;
    ctx.until("all nodes are Ready", PATIENCE, || Ok(checks::nodes_are_ready(ctx, &rest).ok()))?;
    let (longest, asked) = client.stop(ctx)?;
    report::line(&format!("without {lost}, the longest time without an answer was {longest} ms"));
    ensure!(longest <= LONGEST, "no answer for {longest} ms:\n{asked}");
    ensure!(ready_since(ctx, &rest, worker)? == since, "{worker} was not Ready for a while");
    Ok(())
}

/// The time of the last change of the condition Ready.
fn ready_since(ctx: &Context<'_>, site: &Site, node: &str) -> Result<String> {
    let path = "{.status.conditions[?(@.type==\"Ready\")].lastTransitionTime}";
    ctx.kubectl(site, &format!("get node {node} -o jsonpath='{path}'"))
}

/// The worker, which no command names, uses the control planes that are in the cluster.
fn configuration_follows(ctx: &Context<'_>, site: &Site, worker: &str) -> Result<()> {
    let [first, second, third, _] = &site.hosts[..] else { bail!("four hosts") };
    let mut two = site.variant("two", |cluster| {
        keep_hosts(cluster, &[first, second, &worker.to_owned()]);
        for role in ["etcd", "control-plane"] {
            cluster["spec"]["roleGroups"][role] = serde_json::json!([first, second]);
        }
    })?;
    two.hosts.retain(|host| host != third);
    let servers = || ctx.host(worker, "grep -c '^    server ' /etc/kubekey/haproxy/haproxy.cfg");
    let client = Client::start(ctx, worker)?;
    ctx.kk_nodes(site, &["delete", "node", third])?.expect_code(0)?;
    ensure!(servers()?.trim() == "2", "the configuration has {} servers", servers()?);
    uses_itself(ctx, &two)?;
    ctx.kk_nodes(site, &["add", "nodes"])?.expect_code(0)?;
    ensure!(servers()?.trim() == "3", "the configuration has {} servers", servers()?);
    let (longest, asked) = client.stop(ctx)?;
    report::line(&format!("while a control plane left and joined, it was {longest} ms"));
    ensure!(longest <= LONGEST_CHANGE, "no answer for {longest} ms:\n{asked}");
    uses_itself(ctx, site)
}
