//! A setting that cannot work stops at the first host, with its cause; all others run the old one, and the file put right
//! heals it.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};

use crate::cases::{self, Case};
use crate::checks::{self, items};
use crate::cluster;
use crate::context::Context;
use crate::site::Site;

/// A node whose kubelet is gone is `NotReady` after 40 s.
const NOTICED: Duration = Duration::from_mins(1);

struct Setting {
    name: &'static str,
    edit: fn(&mut Value),
    /// Words in what `kk` says.
    says: &'static [&'static str],
}

const CASES: &[Setting] = &[
    Setting {
        name: "kubelet-configuration",
        edit: |cluster| {
            cluster["spec"]["kubernetes"]["kubeletConfiguration"]["imageGCHighThresholdPercent"] = json!(50);
        },
        says: &["kubelet", "ImageGCHighThresholdPercent"],
    },
    Setting {
        name: "kubelet-flag",
        edit: |cluster| cluster["spec"]["kubernetes"]["kubeletArgs"] = json!(["no-such-flag=1"]),
        says: &["kubelet", "no-such-flag"],
    },
    Setting {
        name: "api-server-flag",
        edit: |cluster| cluster["spec"]["kubernetes"]["apiserverArgs"] = json!(["no-such-flag=1"]),
        says: &["apiserver", "no-such-flag"],
    },
    Setting {
        name: "controller-manager-flag",
        edit: |cluster| cluster["spec"]["kubernetes"]["controllerManagerArgs"] = json!(["no-such-flag=1"]),
        says: &["controller-manager", "no-such-flag"],
    },
    Setting {
        name: "scheduler-flag",
        edit: |cluster| cluster["spec"]["kubernetes"]["schedulerArgs"] = json!(["no-such-flag=1"]),
        says: &["scheduler", "no-such-flag"],
    },
    Setting {
        name: "etcd-setting",
        edit: |cluster| cluster["spec"]["etcd"]["extraArgs"] = json!(["ETCD_HEARTBEAT_INTERVAL=never"]),
        says: &["etcd", "never"],
    },
];

impl Case for Setting {
    fn name(&self) -> &'static str {
        self.name
    }
}

pub(super) fn run(ctx: &Context<'_>) -> Result<()> {
    cases::each(ctx, CASES, |case| one(ctx, &cluster::ensure(ctx)?.site, case))
}

fn one(ctx: &Context<'_>, site: &Site, case: &Setting) -> Result<()> {
    let wrong = site.variant(case.name, case.edit)?;
    let run = ctx.kk(&wrong, "create", &[])?;
    ensure!(matches!(run.finished.code, Some(1 | 3 | 5)), "kk ended with {:?}", run.finished.code);
    run.expect_said(case.says)?;
    // Time enough for a broken kubelet to be noticed.
    std::thread::sleep(NOTICED);
    let broken = broken_hosts(ctx, site)?;
    ensure!(broken.len() <= 1, "more than one host took the setting: {}", broken.join(", "));
    ctx.kk_ok(site, "create", &[]).context("create with the file put right")?;
    checks::cluster_is_complete(ctx, site)
}

/// Hosts with a unit that does not run, or a node that is not Ready. Where no API answers, the control plane is broken.
fn broken_hosts(ctx: &Context<'_>, site: &Site) -> Result<Vec<String>> {
    let mut broken = Vec::new();
    let nodes = ctx.kubectl_json(site, "get nodes").unwrap_or_default();
    for host in &site.hosts {
        let units = checks::UNITS.join(" ");
        let runs = ctx.host(host, &format!("systemctl is-active {units} || true"))?;
        let node = items(&nodes).find(|node| node["metadata"]["name"] == host.as_str());
        let unready = node.is_some_and(|node| {
            let mut conditions = node["status"]["conditions"].as_array().into_iter().flatten();
            conditions.any(|condition| condition["type"] == "Ready" && condition["status"] != "True")
        });
        if unready || runs.lines().any(|state| state != "active") {
            broken.push(host.clone());
        }
    }
    Ok(broken)
}
