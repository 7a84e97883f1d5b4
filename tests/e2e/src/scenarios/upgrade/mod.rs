//! A cluster of one control plane and two workers gets the next minor version of Kubernetes, and newer versions of etcd and runc
//! with it. A Deployment with a budget answers through its Service all the time, a killed run is resumed, and afterwards a create
//! with the new version finds nothing to do.

pub(super) mod chain;
pub(super) mod fails;
pub(super) mod ha;

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use kk_config::KubeVersion;
use rustix::process::Signal;
use serde_json::json;

use crate::checks;
use crate::context::Context;
use crate::site::Site;

/// The default version, which the lab builds first.
pub(crate) const FROM: &str = kk_config::DEFAULT_KUBERNETES_VERSION;
/// A version of the next minor that the lab builds, too.
pub(crate) const TO: &str = "v1.37.1";
/// An address in the range of Services that no other Service gets.
const SERVICE: &str = "10.233.0.80";

pub(super) fn run(ctx: &Context<'_>) -> Result<()> {
    let with = PARTS.map(|part| format!("{}={}", part.name, part.from));
    let versions = ["--kubernetes", FROM, "--kubernetes", TO, "--with", &with[0], "--with", &with[1]];
    let newest = Site::booted(ctx, &ctx.dir.join("site"), 3, None, &versions)?;
    let site = newest.variant("old", |cluster| {
        for part in PARTS {
            cluster["spec"]["components"][part.name] = json!(part.from);
        }
    })?;
    ctx.kk_ok(&site, "create", &[])?;
    parts_have(ctx, &site, |part| part.from)?;
    let coredns = ctx.kubectl_json(&site, "-n kube-system get deployment coredns")?;
    let image = checks::text(&coredns["spec"]["template"]["spec"]["containers"][0]["image"]);
    let objects = include_str!("web.yaml").replace("IMAGE", &image).replace("SERVICE", SERVICE);
    ctx.apply(&site, &objects)?;
    ctx.kubectl(&site, "rollout status deployment web --timeout=120s")?;

    let from = KubeVersion::default();
    let older = KubeVersion { patch: from.patch.saturating_sub(1), ..from }.to_string();
    ctx.kk_nodes(&site, &["upgrade", "--with-kubernetes", &older])?
        .expect_code(3)?
        .expect_said(&[&format!("{older} is older")])?;

    in_the_way(ctx, &site, &image).context("what stands in the way")?;

    let ask = format!("service={SERVICE}\n{}", include_str!("ask.sh"));
    ctx.until("the Service answers", Duration::from_mins(1), || {
        let answer =
            ctx.host(site.control_plane(), &format!("curl --silent --max-time 5 http://{SERVICE}/health"));
        Ok(answer.ok().filter(|answer| answer == "OK"))
    })?;
    let asking = ctx.on_host(site.control_plane(), &ask).limit(Duration::from_mins(12));
    let asking = ctx.start("ask", asking)?;

    let to = ["upgrade", "--with-kubernetes", TO, "--with-etcd", PARTS[0].to, "--with-runc", PARTS[1].to];
    // Killed in the turn of a control plane, and in the turn of a worker: the next run continues.
    for (job, task) in
        [("kk-killed-1", "control-plane/apply_changed_settings"), ("kk-killed-2", "turn/uncordon_node2")]
    {
        let words = [&to[..], &["-y", "--output", "json"]].concat();
        let mut killed = ctx.start(job, ctx.kk_job(&site, &words))?;
        ctx.await_task(&mut killed, task)?;
        killed.signal(Signal::KILL)?;
        ensure!(killed.wait()?.code.is_none(), "kk had ended before it could be killed in {task}");
    }
    let rest = ctx.kk_nodes(&site, &to)?;
    rest.expect_code(0)?;
    let drained: Vec<String> = rest.events.changes().iter().map(ToString::to_string).collect();
    ensure!(!drained.iter().any(|task| task.contains("drain_node1")), "node1 was drained again: {drained:?}");

    ctx.host(site.control_plane(), "touch /tmp/asked.stop")?;
    let asked = asking.wait()?.ok()?;
    ensure!(!asked.contains("missed"), "the Service did not always answer:\n{asked}");
    parts_have(ctx, &site, |part| part.to)?;
    is_upgraded(ctx, &newest)
}

/// A component that the hosts have in an older version than the lab's file names.
#[derive(Clone, Copy)]
struct Part {
    /// As `spec.components` calls it.
    name: &'static str,
    from: &'static str,
    to: &'static str,
    /// Prints the version that is in use.
    asked: &'static str,
}

const PARTS: [Part; 2] = [
    Part {
        name: "etcd",
        from: "3.6.15",
        to: "3.6.16",
        asked: "curl --silent --fail --cacert /etc/ssl/etcd/ssl/ca.pem --cert /etc/ssl/etcd/ssl/member-$(hostname).pem \
                --key /etc/ssl/etcd/ssl/member-$(hostname)-key.pem https://127.0.0.1:2379/version",
    },
    Part { name: "runc", from: "1.4.2", to: "1.4.3", asked: "runc --version" },
];

/// On every host: with three hosts each is a member of etcd.
fn parts_have(ctx: &Context<'_>, site: &Site, version: impl Fn(Part) -> &'static str) -> Result<()> {
    for host in &site.hosts {
        for part in PARTS {
            let (said, version) = (ctx.host(host, part.asked)?, version(part));
            ensure!(said.contains(version), "{host} has another {} than {version}: {said}", part.name);
        }
    }
    Ok(())
}

/// Every node has the new version and takes pods, nothing of the old one runs, and a create with the new version finds nothing
/// to do.
fn is_upgraded(ctx: &Context<'_>, site: &Site) -> Result<()> {
    let upgraded =
        site.variant("upgraded", |cluster| cluster["spec"]["kubernetes"]["version"] = json!(TO))?;
    let nodes = ctx.kubectl_json(&upgraded, "get nodes")?;
    for node in checks::items(&nodes) {
        let name = checks::text(&node["metadata"]["name"]);
        let version = checks::text(&node["status"]["nodeInfo"]["kubeletVersion"]);
        ensure!(version == TO, "{name} has {version}");
        ensure!(node["spec"]["unschedulable"] != true, "{name} takes no pods");
    }
    let images = ctx.kubectl(&upgraded, "get pods -A -o jsonpath='{..image}'")?;
    ensure!(!images.contains(FROM), "something of {FROM} still runs: {images}");
    checks::cluster_is_complete(ctx, &upgraded).context("after the upgrade")?;
    checks::starts_are_seen_soon(ctx, upgraded.control_plane())?;
    checks::create_changes_nothing(ctx, &upgraded)?;
    Ok(())
}

/// All of it is reported before the first change, at once.
fn in_the_way(ctx: &Context<'_>, site: &Site, image: &str) -> Result<()> {
    let objects = include_str!("in_the_way.yaml").replace("IMAGE", image);
    ctx.apply(site, &objects)?;
    ctx.kubectl(site, "wait --for=condition=PodScheduled pod/lonely --timeout=60s")?;
    ctx.until("the budget knows its pods", Duration::from_mins(1), || {
        let status = ctx.kubectl_json(site, "get poddisruptionbudget all")?;
        Ok((status["status"]["expectedPods"] == 4 && status["status"]["currentHealthy"] == 4).then_some(()))
    })?;
    let words = ["upgrade", "--with-kubernetes", TO, "--dry-run"];
    let refused = ctx.kk_nodes(site, &words)?;
    refused.expect_code(5)?.expect_said(&["no controller re-creates the pod default/lonely"])?;
    let warnings = refused.events.found("warning");
    for expected in [
        "the PodDisruptionBudget default/all allows no eviction: it requires all 4",
        "the webhook dead/dead.example.org blocks the requests that it covers: its Service default/nobody",
    ] {
        ensure!(warnings.iter().any(|line| line.contains(expected)), "kk did not warn of it: {warnings:?}");
    }
    ctx.kubectl(site, "delete pod/lonely pdb/all validatingwebhookconfiguration/dead --wait=false")?;
    ctx.kubectl(site, "wait --for=delete pod/lonely --timeout=60s")?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    #[test]
    fn the_lab_builds_the_default_version_first_and_a_version_of_the_next_minor() {
        let data: Value = serde_saphyr::from_str(include_str!("../../../../lab/versions.yaml")).unwrap();
        let versions = data["components"]["kubernetes"]["versions"].as_array().unwrap();
        let versions: Vec<String> =
            versions.iter().map(|version| format!("v{}", checks::text(version))).collect();
        assert_eq!(versions[0], FROM);
        assert!(versions.iter().any(|version| version == TO), "{versions:?}");
        assert_eq!(TO.parse::<KubeVersion>().unwrap().minor, KubeVersion::default().minor + 1);
        assert!(KubeVersion::default().patch > 0, "the scenario asks for the patch version before");
    }
}
