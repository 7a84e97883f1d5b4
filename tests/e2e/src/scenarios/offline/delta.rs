//! A cluster from a bundle gets a node from it, and the next minor version of Kubernetes from a delta that is merged with it,
//! while mirror and registry are unreachable.

use anyhow::{Result, ensure};
use serde_json::json;

use super::{kk, text, walls::Walls};
use crate::checks;
use crate::context::Context;
use crate::scenarios::upgrade::{FROM, TO};
use crate::site::Site;

pub(in super::super) fn run(ctx: &Context<'_>) -> Result<()> {
    let versions = ["--kubernetes", FROM, "--kubernetes", TO];
    let lab = Site::booted(ctx, &ctx.dir.join("site"), 3, None, &versions)?;
    let [first, second, added] = &lab.hosts[..] else { anyhow::bail!("three hosts") };
    let mut small = lab.variant("small", |cluster| {
        let hosts = cluster["spec"]["hosts"].as_array_mut().into_iter();
        hosts.for_each(|hosts| hosts.retain(|host| host["name"] != added.as_str()));
        cluster["spec"]["roleGroups"] =
            json!({"etcd": [first], "control-plane": [first], "worker": [second]});
    })?;
    small.hosts.truncate(2);
    let [bundle, delta, merged] =
        ["bundle", "delta", "merged"].map(|name| text(&lab.dir.join(format!("{name}.tar.zst"))));
    let both = format!("{FROM},{TO}");
    for (name, versions, more) in
        [("from", FROM, vec!["-o", &bundle]), ("both", both.as_str(), vec!["--base", &bundle, "-o", &delta])]
    {
        let manifest = text(&lab.dir.join(format!("{name}.yaml")));
        let words =
            ["create", "manifest", "-f", &text(&lab.file), "--with-kubernetes", versions, "-o", &manifest];
        kk(ctx, &lab, &words)?.ok()?;
        let words = ["artifact", "export", "-m", &manifest, "--workdir", "stock"];
        kk(ctx, &lab, &[&words[..], &more].concat())?.ok()?;
    }

    let walls = Walls::up(ctx, &lab)?;
    ctx.kk_ok(&small, "create", &["-a", &bundle, "--allow-unsigned"])?;
    // Without the bundle, an error names the unreachable source before anything changes.
    let refused = ctx.kk_nodes(&lab, &["upgrade", "--with-kubernetes", TO])?;
    ensure!(refused.finished.code != Some(0), "an upgrade went without its programs");
    ensure!(refused.events.changes().is_empty(), "an upgrade that was refused changed something");
    // The refused upgrade was the attempt that the rules have to count. From here on, no attempt is expected.
    drop(walls);
    let walls = Walls::up(ctx, &lab)?;

    ctx.kk_nodes(&lab, &["add", "nodes", "-a", &bundle, "--allow-unsigned"])?.expect_code(0)?;
    checks::cluster_is_complete(ctx, &lab)?;
    // The bundle alone contains only the current version.
    let words = ["upgrade", "--with-kubernetes", TO, "--allow-unsigned", "-a"];
    let refused = ctx.kk_nodes(&lab, &[&words[..], &[bundle.as_str()]].concat())?;
    refused.expect_code(5)?.expect_said(&["is not in the bundle"])?;
    ensure!(refused.events.changes().is_empty(), "an upgrade that was refused changed something");
    kk(ctx, &lab, &["artifact", "merge", "--base", &bundle, "--delta", &delta, "-o", &merged])?.ok()?;
    ctx.kk_nodes(&lab, &[&words[..], &[merged.as_str()]].concat())?.expect_code(0)?;
    let upgraded = lab.variant("upgraded", |cluster| cluster["spec"]["kubernetes"]["version"] = json!(TO))?;
    let nodes = ctx.kubectl_json(&upgraded, "get nodes")?;
    for node in checks::items(&nodes) {
        let name = checks::text(&node["metadata"]["name"]);
        let version = checks::text(&node["status"]["nodeInfo"]["kubeletVersion"]);
        ensure!(version == TO, "{name} has {version}");
    }
    checks::cluster_is_complete(ctx, &upgraded)?;
    checks::service_answers_across_nodes(ctx, &upgraded)?;
    let again = ctx.kk(&upgraded, "create", &["-a", &merged, "--allow-unsigned"])?;
    again.expect_code(0)?;
    ensure!(again.events.changes().is_empty(), "a create after the upgrade changed something");
    walls.nobody_tried()
}
