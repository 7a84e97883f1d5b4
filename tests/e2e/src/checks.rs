//! Checks that a cluster works.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use serde_json::Value;

use crate::context::Context;
use crate::site::Site;

/// Units that `kk` runs on the hosts.
pub(crate) const UNITS: [&str; 3] = ["etcd", "containerd", "kubelet"];

/// A Deployment behind a Service; `make demo` shows the same.
pub(crate) const WEB: &str = include_str!("../web.yaml");
/// Its name, as pods know it.
const SERVICE: &str = "web.web.svc.cluster.local";
const ASK_FROM_POD: &str = include_str!("../ask_from_pod.sh");

/// Its cache is in a directory that no comparison of hosts reads.
const KUBECTL: &str =
    "kubectl --kubeconfig /etc/kubernetes/admin.conf --request-timeout 10s --cache-dir /tmp/e2e-kubectl";

impl Context<'_> {
    /// Runs kubectl on the control plane; `words` is shell text.
    pub(crate) fn kubectl(&self, site: &Site, words: &str) -> Result<String> {
        self.host(site.control_plane(), &format!("{KUBECTL} {words}"))
    }

    /// The JSON output of kubectl.
    pub(crate) fn kubectl_json(&self, site: &Site, words: &str) -> Result<Value> {
        serde_json::from_str(&self.kubectl(site, &format!("{words} -o json"))?)
            .context("kubectl answered no JSON")
    }

    /// `kubectl apply` of these objects.
    pub(crate) fn apply(&self, site: &Site, objects: &str) -> Result<()> {
        let job = self.on_host(site.control_plane(), &format!("{KUBECTL} apply -f -")).stdin(objects);
        self.run("kubectl-apply", job)?.ok()?;
        Ok(())
    }
}

/// The items of a list of objects.
pub(crate) fn items(list: &Value) -> impl Iterator<Item = &Value> {
    list["items"].as_array().into_iter().flatten()
}

/// A text field; empty if the field is missing.
pub(crate) fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

/// All hosts are nodes, and Ready at this moment: `kk` does not end before.
pub(crate) fn nodes_are_ready(ctx: &Context<'_>, site: &Site) -> Result<()> {
    let nodes = ctx.kubectl_json(site, "get nodes")?;
    let is_ready = |node: &&Value| {
        let mut conditions = node["status"]["conditions"].as_array().into_iter().flatten();
        conditions.any(|condition| condition["type"] == "Ready" && condition["status"] == "True")
    };
    let ready: BTreeSet<String> =
        items(&nodes).filter(is_ready).map(|node| text(&node["metadata"]["name"])).collect();
    let wanted: BTreeSet<String> = site.hosts.iter().cloned().collect();
    ensure!(ready == wanted, "nodes that are Ready: {ready:?}, wanted: {wanted:?}");
    Ok(())
}

/// Nodes Ready, CoreDNS available, no pod of the system in trouble: all at the moment when `kk` reports success.
pub(crate) fn cluster_is_complete(ctx: &Context<'_>, site: &Site) -> Result<()> {
    nodes_are_ready(ctx, site)?;
    let coredns = ctx.kubectl_json(site, "-n kube-system get deployment coredns")?;
    let (wanted, available) = (&coredns["spec"]["replicas"], &coredns["status"]["availableReplicas"]);
    if wanted != available {
        let pods = ctx.kubectl(site, "-n kube-system describe pods -l k8s-app=kube-dns")?;
        bail!("CoreDNS: {available} of {wanted} pods are available\n{pods}");
    }
    let pods = ctx.kubectl_json(site, "get pods -A")?;
    for pod in items(&pods) {
        // The pod was deleted with its Deployment, and has just ended.
        if !pod["metadata"]["deletionTimestamp"].is_null() {
            continue;
        }
        let name = text(&pod["metadata"]["name"]);
        ensure!(pod["status"]["phase"] == "Running", "pod {name} is {}", pod["status"]["phase"]);
    }
    Ok(())
}

/// Kubelets check every second whether the static pods of this control plane have started: with kubeadm's own probes, the API
/// shows them as ready up to 20 s late.
pub(crate) fn starts_are_seen_soon(ctx: &Context<'_>, host: &str) -> Result<()> {
    let look = "cd /etc/kubernetes/manifests && for part in kube-apiserver kube-controller-manager kube-scheduler; do \
                sed -n '/startupProbe:/,$ s/^ *periodSeconds: //p' $part.yaml | head -n 1; done";
    let said = ctx.host(host, look)?;
    let periods: Vec<&str> = said.split_whitespace().collect();
    ensure!(periods == ["1"; 3], "startup probes on {host} look every {periods:?} s");
    Ok(())
}

/// A Deployment with a pod on each worker answers through its Service by name from the pod on either worker, and
/// each pod answers the other one directly.
pub(crate) fn service_answers_across_nodes(ctx: &Context<'_>, site: &Site) -> Result<()> {
    service_answers_on_slow_hosts(ctx, site, 1)
}

/// The same for hosts that need so many times as long to start a pod and to learn of it.
pub(crate) fn service_answers_on_slow_hosts(ctx: &Context<'_>, site: &Site, times: u32) -> Result<()> {
    let image = image_of_coredns(ctx, site)?;
    ctx.apply(site, &WEB.replace("image: IMAGE", &format!("image: {image}")))?;
    let patience = Duration::from_mins(1) * times;
    let pods = ctx.until("a web pod runs on each worker", patience, || {
        let pods = web_pods(ctx, site)?;
        Ok(Some(pods).filter(|pods| pods.len() == site.hosts.len() - 1))
    })?;
    for (host, own) in &pods {
        for target in pods.values().filter(|address| *address != own) {
            let answer = ask_from_pod(ctx, host, target, 10)?;
            ensure!(answer == "OK", "from the pod on {host}, {target} answers `{answer}`");
        }
        // kube-proxy on each node learns of new endpoints a moment after the pods are ready. An earlier connection never
        // succeeds, because the kernel keeps its first route. From then on every attempt counts.
        let known = "the Service answers on each worker";
        ctx.until(known, Duration::from_secs(30) * times, || {
            Ok(ask_from_pod(ctx, host, SERVICE, times * 2).ok())
        })?;
        for _ in 0..10 {
            let answer = ask_from_pod(ctx, host, SERVICE, 10)?;
            ensure!(answer == "OK", "from the pod on {host}, the Service answers `{answer}`");
        }
    }
    ctx.kubectl(site, &format!("delete namespace web --wait=true --timeout={}s", 60 * times))?;
    Ok(())
}

/// Both pods of CoreDNS answer each host, at their addresses of all families.
pub(crate) fn dns_pods_answer_everywhere(ctx: &Context<'_>, site: &Site) -> Result<()> {
    let families =
        site.read()?["spec"]["network"]["kubePodsCIDR"].as_str().unwrap_or_default().split(',').count();
    let pods = ctx.kubectl_json(site, "-n kube-system get pods -l k8s-app=kube-dns")?;
    for pod in items(&pods) {
        let addresses: Vec<String> =
            pod["status"]["podIPs"].as_array().into_iter().flatten().map(|one| text(&one["ip"])).collect();
        ensure!(addresses.len() == families, "a pod of CoreDNS has the addresses {addresses:?}");
        for (host, address) in site.hosts.iter().flat_map(|host| addresses.iter().map(move |one| (host, one)))
        {
            let address = if address.contains(':') { format!("[{address}]") } else { address.clone() };
            let ask = format!("curl -sS --globoff --max-time 5 -o /dev/null http://{address}:9153/metrics");
            ctx.host(host, &ask).with_context(|| format!("{host} does not reach the pod at {address}"))?;
        }
    }
    Ok(())
}

/// The image of CoreDNS, which is on every node.
pub(crate) fn image_of_coredns(ctx: &Context<'_>, site: &Site) -> Result<String> {
    let coredns = ctx.kubectl_json(site, "-n kube-system get deployment coredns")?;
    Ok(text(&coredns["spec"]["template"]["spec"]["containers"][0]["image"]))
}

/// Address of the ready web pod by host.
pub(crate) fn web_pods(ctx: &Context<'_>, site: &Site) -> Result<BTreeMap<String, String>> {
    let pods = ctx.kubectl_json(site, "-n web get pods")?;
    let ready = items(&pods).filter(|pod| pod["status"]["containerStatuses"][0]["ready"] == true);
    Ok(ready.map(|pod| (text(&pod["spec"]["nodeName"]), text(&pod["status"]["podIP"]))).collect())
}

fn ask_from_pod(ctx: &Context<'_>, host: &str, target: &str, seconds: u32) -> Result<String> {
    ask_from(ctx, host, "web", target, seconds)
}

/// The answer of the web server at `target` to a query from the first container of this name on a host.
pub(crate) fn ask_from(
    ctx: &Context<'_>,
    host: &str,
    container: &str,
    target: &str,
    seconds: u32,
) -> Result<String> {
    let seconds = seconds.to_string();
    let job = ctx.lab_job(&["exec", host, "--", "sh", "-s", container, target, &seconds]).stdin(ASK_FROM_POD);
    ctx.run("ask-from-pod", job)?.ok().with_context(|| format!("asking {target} from the pod on {host}"))
}

/// How often each container was restarted, by pod, container and the pod's identity.
pub(crate) fn restarts(ctx: &Context<'_>, site: &Site) -> Result<BTreeMap<String, u64>> {
    let mut counts = BTreeMap::new();
    let pods = ctx.kubectl_json(site, "get pods -A")?;
    for pod in items(&pods) {
        for status in pod["status"]["containerStatuses"].as_array().into_iter().flatten() {
            let name = format!(
                "{} {} {}",
                text(&pod["metadata"]["name"]),
                text(&pod["metadata"]["uid"]),
                text(&status["name"])
            );
            counts.insert(name, status["restartCount"].as_u64().unwrap_or(u64::MAX));
        }
    }
    ensure!(!counts.is_empty(), "the cluster has no pods");
    Ok(counts)
}

/// The identity that systemd gives each start of a unit, by `host unit`. A unit that does not run has none.
pub(crate) fn invocations(ctx: &Context<'_>, site: &Site) -> Result<BTreeMap<String, String>> {
    let mut found = BTreeMap::new();
    for host in &site.hosts {
        for unit in UNITS {
            let id = ctx.host(host, &format!("systemctl show --property InvocationID --value {unit}"))?;
            found.insert(format!("{host} {unit}"), id.trim().to_owned());
        }
    }
    Ok(found)
}

/// Errors: a create with this file finds something to do, which is named.
pub(crate) fn create_changes_nothing(ctx: &Context<'_>, site: &Site) -> Result<()> {
    let changes = ctx.kk_ok(site, "create", &[])?.events.changes();
    ensure!(changes.is_empty(), "the next create still changed {changes:?}");
    Ok(())
}

/// Cluster id and members (id and name) of etcd.
pub(crate) fn etcd_identity(ctx: &Context<'_>, site: &Site) -> Result<String> {
    let host = site.control_plane();
    let script = format!(
        "cd /etc/ssl/etcd/ssl
         exec etcdctl --endpoints https://127.0.0.1:2379 --cacert ca.pem --cert member-{host}.pem --key member-{host}-key.pem \
           --command-timeout 5s member list --write-out json"
    );
    let list: Value = serde_json::from_str(&ctx.host(host, &script)?).context("etcdctl answered no JSON")?;
    let mut members: Vec<String> = list["members"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|member| format!("{} {}", member["ID"], text(&member["name"])))
        .collect();
    members.sort();
    Ok(format!("{}: {}", list["header"]["cluster_id"], members.join(", ")))
}
