//! Packages of a bundle: a host that lacks tools gets them and nothing else, from a create that is killed, and is as before after
//! a delete. The bundle is the only source of the packages.

use std::fs;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use rustix::process::Signal;
use serde_json::{Value, json};

use super::walls::Walls;
use super::{kk, text};
use crate::checks;
use crate::context::Context;
use crate::host_state;
use crate::process::Job;
use crate::site::Site;

const DEBIAN: &str = include_str!("debian.sh");
/// Packages that a bundle for Debian has to contain.
const PACKAGES: [&str; 10] =
    ["tar", "mount", "iproute2", "iptables", "conntrack", "socat", "kmod", "util-linux", "ipset", "ipvsadm"];
/// Files that a delete leaves behind: the host's own records of its packages.
const NOTES: [&str; 1] = [" /var/lib/dpkg/"];

pub(crate) fn run(ctx: &Context<'_>) -> Result<()> {
    let site = Site::fresh(ctx, &ctx.dir.join("site"), 2, None)?;
    let [whole, poor] = [&site.hosts[0], &site.hosts[1]];
    ctx.host(poor, "dpkg --purge socat conntrack; : >/var/log/dpkg.log")?;
    let before = host_state::of_all(ctx, &site.hosts)?;
    let bundle = text(&bundle(ctx, &site)?);
    let walls = Walls::up(ctx, &site)?;
    let without = ctx.kk(&site, "create", &["-a", &bundle, "--allow-unsigned"])?;
    without.expect_code(5)?.expect_said(&["missing: conntrack, socat", "apt-get install conntrack socat"])?;

    let words = ["-a", &bundle, "--allow-unsigned", "--with-packages"];
    let mut killed = ctx.start(
        "kk-killed",
        ctx.kk_job(&site, &[&["create", "cluster", "-y", "--output", "json"], &words[..]].concat()),
    )?;
    ctx.await_task(&mut killed, "os/install_packages")?;
    killed.signal(Signal::KILL)?;
    ensure!(killed.wait()?.code.is_none(), "kk had ended before it could be killed");
    let create = ctx.kk_ok(&site, "create", &words)?;
    checks::cluster_is_complete(ctx, &site)?;
    let changes: Vec<String> = create.events.changes().iter().map(ToString::to_string).collect();
    let is_install = |change: &&String| change.contains("install ") && change.contains(" from the bundle");
    let others: Vec<_> =
        changes.iter().filter(is_install).filter(|change| !change.starts_with(poor.as_str())).collect();
    ensure!(others.is_empty(), "packages were installed where nothing was missing: {others:?}");
    let again = ctx.kk_ok(&site, "create", &words)?;
    ensure!(again.events.changes().is_empty(), "the second create changed something");

    let installed =
        ctx.host(poor, "sed -n 's/.* install \\([^:]*\\):.*/\\1/p' /var/log/dpkg.log | sort -u")?;
    ensure!(installed.split_whitespace().eq(["conntrack", "socat"]), "not what was missing: {installed}");
    let recorded = ctx.host(poor, "awk '$1 == \"package\" { print $2 }' /etc/kubekey/owned | sort")?;
    ensure!(recorded == installed, "installed were\n{installed}and recorded\n{recorded}");
    ensure!(
        ctx.host(whole, "grep -c ^package /etc/kubekey/owned || :")?.trim() == "0",
        "{whole} lacked nothing"
    );
    ctx.host(poor, "! [ -e /var/lib/kubekey/packages ]; dpkg --audit; socat -V >/dev/null; conntrack --version >/dev/null")?;
    let now = host_state::of_all(ctx, &site.hosts)?;
    let touched = host_state::differences(&before, &now);
    let of_apt: Vec<_> = touched
        .iter()
        .filter(|line| ["/etc/apt", "/var/lib/apt"].iter().any(|path| line.contains(path)))
        .collect();
    ensure!(of_apt.is_empty(), "apt's own files were touched: {of_apt:?}");

    ctx.kk_ok(&site, "delete", &["--all"])?;
    ctx.host(poor, "! command -v socat; ! command -v conntrack")?;
    host_state::expect_restored_but(ctx, &before, &NOTES)?;
    walls.nobody_tried()
}

/// A bundle for the site with the packages of its hosts, from a partial archive that Debian has signed.
fn bundle(ctx: &Context<'_>, site: &Site) -> Result<std::path::PathBuf> {
    let debian = site.dir.join("debian");
    let place = text(&debian);
    let words = [&["-euc", DEBIAN, "sh", &place, "bookworm"], &PACKAGES[..]].concat();
    ctx.run("debian", Job::new("sh").args(words).limit(Duration::from_mins(5)))?.ok()?;
    let manifest = site.dir.join("manifest.yaml");
    kk(ctx, site, &["create", "manifest", "-f", &text(&site.file), "-o", &text(&manifest)])?.ok()?;
    add_system(&manifest, &debian)?;
    let bundle = site.dir.join("bundle.tar.zst");
    kk(
        ctx,
        site,
        &["artifact", "export", "-m", &text(&manifest), "-o", &text(&bundle), "--workdir", "stock"],
    )?
    .ok()?;
    kk(ctx, site, &["artifact", "verify", "-a", &text(&bundle)])?.ok()?;
    let inspected = kk(ctx, site, &["artifact", "inspect", "-a", &text(&bundle)])?.ok()?;
    ensure!(inspected.contains("debian"), "the packages are not shown:\n{inspected}");
    Ok(bundle)
}

fn add_system(manifest: &Path, debian: &Path) -> Result<()> {
    let mut parsed: Value = serde_saphyr::from_str(&fs::read_to_string(manifest)?)?;
    let spec = parsed["spec"].as_object_mut().context("the manifest has no spec")?;
    let source = format!("file:{} bookworm main", debian.display());
    let repository = json!({"sources": [source]});
    spec.insert(
        "operatingSystems".into(),
        json!([{"id": "debian", "version": "12", "repository": repository}]),
    );
    // JSON is YAML.
    fs::write(manifest, parsed.to_string())?;
    Ok(())
}
