//! A setting that cannot work stops the run at the first host, and the error names the cause. All other hosts run the old setting
//! and would restart with it, and the corrected file repairs the first host.

use std::collections::BTreeMap;
use std::fs;

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};

use crate::cases::{self, Case};
use crate::checks;
use crate::cluster;
use crate::context::Context;
use crate::kk::KkRun;
use crate::site::Site;

/// Settings that the binaries of a host read when they start.
const SETTINGS: &str = "cd /; find etc/etcd.env etc/systemd/system/etcd.service etc/containerd \
    etc/systemd/system/containerd.service etc/systemd/system/kubelet.service* var/lib/kubelet/config.yaml \
    etc/kubernetes/manifests -type f -exec sha256sum {} + | sort -k 2";

struct Setting {
    name: &'static str,
    change: Change,
    /// Texts in the messages of `kk`.
    says: &'static [&'static str],
}

enum Change {
    /// The cluster file is edited.
    File(fn(&mut Value)),
    /// A template is replaced.
    Template(&'static str, &'static str),
}

use Change::{File, Template};

const CASES: &[Setting] = &[
    Setting {
        name: "kubelet-configuration",
        change: File(|cluster| {
            cluster["spec"]["kubernetes"]["kubeletConfiguration"]["registryPullQPS"] = json!(-1);
        }),
        says: &["kubelet", "registryPullQPS"],
    },
    Setting {
        name: "kubelet-flag",
        change: File(|cluster| cluster["spec"]["kubernetes"]["kubeletArgs"] = json!(["event-burst=never"])),
        says: &["kubelet", "event-burst"],
    },
    Setting {
        name: "api-server-flag",
        change: File(|cluster| cluster["spec"]["kubernetes"]["apiserverArgs"] = json!(["event-ttl=never"])),
        says: &["apiserver", "event-ttl"],
    },
    Setting {
        name: "controller-manager-flag",
        change: File(|cluster| {
            cluster["spec"]["kubernetes"]["controllerManagerArgs"] = json!(["concurrent-job-syncs=never"]);
        }),
        says: &["controller-manager", "concurrent-job-syncs"],
    },
    Setting {
        name: "scheduler-flag",
        change: File(|cluster| {
            cluster["spec"]["kubernetes"]["schedulerArgs"] = json!(["kube-api-qps=never"]);
        }),
        says: &["scheduler", "kube-api-qps"],
    },
    Setting {
        name: "etcd-setting",
        change: File(|cluster| {
            cluster["spec"]["etcd"]["extraArgs"] = json!(["ETCD_MAX_TXN_OPS=never"]);
        }),
        says: &["etcd", "never"],
    },
    Setting {
        name: "containerd-configuration",
        change: Template("containerd/config.toml", "version = 3\nroot = no-text\n"),
        says: &["containerd", "config.toml"],
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
    let before = looks(ctx, site)?;
    let run = create(ctx, site, case)?;
    ensure!(matches!(run.finished.code, Some(1 | 3 | 5)), "kk ended with {:?}", run.finished.code);
    run.expect_said(case.says)?;
    let after = looks(ctx, site)?;
    let touched: Vec<&String> = before.keys().filter(|host| before[*host] != after[*host]).collect();
    ensure!(
        touched.len() <= 1,
        "the setting reached more than one host: {touched:?}\n{before:#?}\n{after:#?}"
    );
    ctx.kk_ok(site, "create", &[]).context("create with the file put right")?;
    checks::cluster_is_complete(ctx, site)
}

fn create(ctx: &Context<'_>, site: &Site, case: &Setting) -> Result<KkRun> {
    match case.change {
        File(edit) => ctx.kk(&site.variant(case.name, edit)?, "create", &[]),
        Template(path, text) => {
            let directory = ctx.dir.join(case.name);
            let file = directory.join(path);
            fs::create_dir_all(file.parent().context("a template lies in a directory")?)?;
            fs::write(file, text)?;
            let directory = directory.to_str().context("a path that is text")?;
            ctx.kk(site, "create", &["--templates", directory])
        }
    }
}

/// By host: the settings that its binaries read at their next start, and the processes that run now.
fn looks(ctx: &Context<'_>, site: &Site) -> Result<BTreeMap<String, String>> {
    let look =
        format!("{SETTINGS}; systemctl show -p Id,InvocationID,ActiveState {}", checks::UNITS.join(" "));
    site.hosts.iter().map(|host| Ok((host.clone(), ctx.host(host, &look)?))).collect()
}
